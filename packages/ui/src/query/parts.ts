import { type Token, tokenize } from "@skald/logql/syntax";
import type { Matcher } from "@skald/model";

/** Where the parts of a query stand in its text. Offsets are UTF-16 code units, ends are exclusive. */
export interface QueryParts {
  readonly tokens: readonly Token[];
  readonly selectors: readonly SelectorPart[];
}

/** `{..}` and the stages behind it. */
export interface SelectorPart {
  readonly start: number;
  readonly end: number;
  readonly matchers: readonly MatcherPart[];
  readonly stages: readonly StagePart[];
  /** Offset of the pipe of `| unwrap`. */
  readonly unwrapAt: number | undefined;
}

export interface MatcherPart extends Matcher {
  readonly start: number;
  readonly end: number;
}

export interface StagePart {
  readonly start: number;
  readonly end: number;
  readonly tokens: readonly Token[];
}

/** Finds the parts of a query by its tokens. Of a text that does not parse it finds what can be seen. */
export function partsOf(text: string): QueryParts {
  const tokens = tokenize(text);
  const selectors: SelectorPart[] = [];
  for (let at = 0; at < tokens.length; at++) {
    if (tokens[at]?.type !== "{") continue;
    const selector = readSelector(tokens, at);
    selectors.push(selector.part);
    at = selector.next - 1;
  }
  return { tokens, selectors };
}

function readSelector(
  tokens: readonly Token[],
  open: number,
): { part: SelectorPart; next: number } {
  const matchers: MatcherPart[] = [];
  let at = open + 1;
  while (tokens[at] !== undefined && !ends.has(tokens[at]!.type)) {
    const [name, op, value] = [tokens[at], tokens[at + 1], tokens[at + 2]];
    if (name?.type === "IDENTIFIER" && matchOps.has(op?.type ?? "") && value?.type === "STRING") {
      const matcher = { name: name.value as string, op: op!.type as Matcher["op"] };
      const place = { start: name.start, end: value.end };
      matchers.push({ ...matcher, value: value.value as string, ...place });
      at += 3;
    } else at++;
  }
  const end = tokens[at]?.end ?? 0;
  if (tokens[at]?.type === "}") at++;
  const stages: StagePart[] = [];
  let unwrapAt: number | undefined;
  for (;;) {
    const type = tokens[at]?.type;
    if (type === "RANGE") at += tokens[at + 1]?.type === "offset" ? 3 : 1;
    else if (type === "|" && tokens[at + 1]?.type === "unwrap") {
      unwrapAt = tokens[at]!.start;
      break;
    } else if (type === "|" || isLineFilterAt(tokens, at)) {
      const next = type === "|" ? pipeStageEnd(tokens, at) : lineFilterEnd(tokens, at);
      const part = tokens.slice(at, next);
      stages.push({ start: part[0]!.start, end: part.at(-1)!.end, tokens: part });
      at = next;
    } else break;
  }
  return { part: { start: tokens[open]!.start, end, matchers, stages, unwrapAt }, next: at };
}

const ends: ReadonlySet<string> = new Set(["}", "$end", "error"]);
const matchOps: ReadonlySet<string> = new Set(["=", "!=", "=~", "!~"]);
const pipedFilters: ReadonlySet<string> = new Set(["|=", "|~", "|>", "!>"]);

/** Whether a line filter begins here; `!=` and `!~` do so only before a text. */
function isLineFilterAt(tokens: readonly Token[], at: number): boolean {
  const type = tokens[at]?.type ?? "$end";
  if (pipedFilters.has(type)) return true;
  const next = tokens[at + 1]?.type;
  return (type === "!=" || type === "!~") && (next === "STRING" || next === "ip");
}

function lineFilterEnd(tokens: readonly Token[], start: number): number {
  let at = start;
  do {
    at++;
    if (tokens[at]?.type === "ip") at += 4;
    else if (tokens[at]?.type === "STRING") at++;
  } while (tokens[at]?.type === "or");
  return Math.min(at, tokens.length - 1);
}

/** Index behind a stage that begins with a pipe. */
function pipeStageEnd(tokens: readonly Token[], start: number): number {
  const word = tokens[start + 1]?.type ?? "$end";
  const compares = word === "IDENTIFIER" || word === "(" || word === "drop" || word === "keep";
  let depth = 0;
  let at = start + 1;
  for (; at < tokens.length; at++) {
    const type = tokens[at]!.type;
    if (type === "$end" || type === "error" || type === "RANGE") break;
    if (type === "(") depth++;
    else if (type === ")" && --depth < 0) break;
    else if (depth > 0) continue;
    else if (type === "|") break;
    else if (isLineFilterAt(tokens, at)) {
      const isComparison = compares && tokens[at - 1]?.type === "IDENTIFIER";
      if (!isComparison || pipedFilters.has(type)) break;
    }
  }
  return at;
}

/** The text of the log query that ends before an offset: `{..}` and the stages up to there. */
export function logQueryBefore(text: string, offset: number): string | undefined {
  const selector = partsOf(text).selectors.findLast(({ start }) => start < offset);
  return selector === undefined ? undefined : text.slice(selector.start, offset).trim();
}
