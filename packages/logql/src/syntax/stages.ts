import type { Matcher } from "@skald/model";
import { formatMatcher, quote } from "@skald/model";
import type {
  Extraction,
  LabelFilter,
  LabelFormat,
  LabelTarget,
  LineFilterOp,
  LineFilterStage,
  LineFilterValue,
  LogExpr,
  LogfmtStage,
  Stage,
} from "./ast.js";
import { lineFilterFacts } from "./ast.js";
import { patternStageError, regexError, regexpStageError } from "./check.js";
import { type Cursor, filterLevelsMax } from "./cursor.js";
import type { CompareOp } from "./operator.js";
import { printLabelFilter } from "./print-filter.js";
import type { StageWord, Token, TokenType } from "./token.js";

/** Parses a selector and the stages behind it. */
export function parseLogExpr(cursor: Cursor): LogExpr {
  const matchers = parseMatchers(cursor);
  const stages = parseStages(cursor);
  if (cursor.peek() === "|") {
    // Only an unwrap stops the stages at a pipe, and a log query has no use for one.
    cursor.advance();
    throw cursor.unexpected();
  }
  return { kind: "log", matchers, stages };
}

/** Parses `{a="b", c=~"d"}`; the cursor keeps it for the check that follows when the whole query has been read. */
export function parseMatchers(cursor: Cursor): Matcher[] {
  const token = cursor.expect("{");
  const matchers: Matcher[] = [];
  cursor.selectors.push({ matchers, token });
  if (cursor.skip("}")) return matchers;
  let name = cursor.expectText("IDENTIFIER", "}");
  for (;;) {
    matchers.push(parseMatcherValue(cursor, name));
    if (cursor.skip("}")) return matchers;
    if (!cursor.skip(",")) throw cursor.unexpected("}", ",");
    name = cursor.expectText("IDENTIFIER");
  }
}

/** Parses stages up to `| unwrap`, or up to a token that begins no stage. */
export function parseStages(cursor: Cursor): Stage[] {
  const stages: Stage[] = [];
  for (;;) {
    const type = cursor.peek();
    if (isLineFilter(type) && !isComparison(cursor)) {
      const filters = lineFiltersOf(parseLineFilter(cursor, type));
      cursor.countStages(filters.length);
      stages.push(...filters);
    } else if (type === "|" && cursor.peekNext() !== "unwrap") {
      cursor.advance();
      cursor.countStages(1);
      stages.push(parseStage(cursor));
    } else {
      return stages;
    }
  }
}

function isLineFilter(type: TokenType): type is LineFilterOp {
  return Object.hasOwn(lineFilterFacts, type);
}

/** `!=` is a line filter only before a string or `ip(`; else it compares two expressions. */
function isComparison(cursor: Cursor): boolean {
  return cursor.peek() === "!=" && cursor.peekNext() !== "STRING" && cursor.peekNext() !== "ip";
}

function parseLineFilter(cursor: Cursor, op: LineFilterOp): LineFilterStage {
  const alternatives: LineFilterValue[] = [];
  do {
    cursor.advance();
    const token = cursor.token;
    const value: LineFilterValue =
      cursor.peek() === "ip"
        ? { kind: "ip", value: parseIpCall(cursor) }
        : { kind: "text", value: cursor.expectText("STRING", "ip") };
    if (lineFilterFacts[op].by === "regex") cursor.countRegex(value.value, token);
    alternatives.push(value);
  } while (cursor.peek() === "or");
  return { kind: "line_filter", op, alternatives };
}

/** Not-a-or-b means neither, so a negative line filter is a filter per alternative. */
function lineFiltersOf(stage: LineFilterStage): LineFilterStage[] {
  if (!lineFilterFacts[stage.op].negated) return [stage];
  return stage.alternatives.map((value) => ({ ...stage, alternatives: [value] }));
}

function parseStage(cursor: Cursor): Stage {
  const type = cursor.peek();
  if (type === "IDENTIFIER" || type === "(") {
    return { kind: "label_filter", filter: parseLabelFilter(cursor) };
  }
  if (!Object.hasOwn(stageTexts, type)) throw cursor.unexpected();
  cursor.advance();
  return stageTexts[type as StageWord].parse(cursor);
}

/** A stage with what introduces it: `|= "x"`, `| json`, `| status>=500`. */
export function printStage(stage: Stage): string {
  if (stage.kind === "line_filter") return printLineFilter(stage);
  if (stage.kind === "label_filter") return `| ${printLabelFilter(stage.filter)}`;
  const rest = (stageTexts[stage.kind].print as (stage: Stage) => string)(stage);
  return `| ${stage.kind}${rest && ` ${rest}`}`;
}

/** Prints a line filter; alternatives of a negative one are filters of their own. */
function printLineFilter({ op, alternatives }: LineFilterStage): string {
  const values = alternatives.map(({ kind, value }) =>
    kind === "ip" ? `ip(${quote(value)})` : quote(value),
  );
  return `${op} ${values.join(lineFilterFacts[op].negated ? ` ${op} ` : " or ")}`;
}

/** How a stage is written behind its word. */
interface StageText<Kind> {
  readonly parse: (cursor: Cursor) => Stage & { readonly kind: Kind };
  readonly print: (stage: Stage & { readonly kind: Kind }) => string;
}

const stageTexts: { readonly [Kind in StageWord]: StageText<Kind> } = {
  json: {
    parse: (cursor) => ({ kind: "json", extractions: parseExtractions(cursor) }),
    print: ({ extractions }) => printExtractions(extractions),
  },
  logfmt: { parse: parseLogfmt, print: printLogfmt },
  regexp: {
    parse: (cursor) => ({ kind: "regexp", pattern: parsePattern(cursor, "regexp") }),
    print: ({ pattern }) => quote(pattern),
  },
  pattern: {
    parse: (cursor) => ({ kind: "pattern", pattern: parsePattern(cursor, "pattern") }),
    print: ({ pattern }) => quote(pattern),
  },
  unpack: { parse: () => ({ kind: "unpack" }), print: () => "" },
  decolorize: { parse: () => ({ kind: "decolorize" }), print: () => "" },
  line_format: {
    parse: (cursor) => ({ kind: "line_format", template: cursor.expectText("STRING") }),
    print: ({ template }) => quote(template),
  },
  label_format: {
    parse: (cursor) => ({ kind: "label_format", formats: parseList(cursor, parseFormat) }),
    print: ({ formats }) =>
      formats
        .map((f) => `${f.label}=${f.kind === "rename" ? f.source : quote(f.template)}`)
        .join(","),
  },
  drop: {
    parse: (cursor) => ({ kind: "drop", targets: parseList(cursor, parseTarget) }),
    print: ({ targets }) => printTargets(targets),
  },
  keep: {
    parse: (cursor) => ({ kind: "keep", targets: parseList(cursor, parseTarget) }),
    print: ({ targets }) => printTargets(targets),
  },
};

function parseList<T>(cursor: Cursor, parseItem: (cursor: Cursor) => T): T[] {
  const items = [parseItem(cursor)];
  while (cursor.skip(",")) items.push(parseItem(cursor));
  return items;
}

function parseLogfmt(cursor: Cursor): LogfmtStage {
  let strict = false;
  let keepEmpty = false;
  while (cursor.peek() === "FLAG") {
    if (cursor.advance().value === "--strict") strict = true;
    else keepEmpty = true;
  }
  return { kind: "logfmt", strict, keepEmpty, extractions: parseExtractions(cursor) };
}

function printLogfmt({ strict, keepEmpty, extractions }: LogfmtStage): string {
  const flags = [strict ? "--strict" : "", keepEmpty ? "--keep-empty" : ""];
  return [...flags, printExtractions(extractions)].filter(Boolean).join(" ");
}

function printExtractions(extractions: readonly Extraction[]): string {
  return extractions.map(({ label, path }) => `${label}=${quote(path)}`).join(",");
}

function parseExtractions(cursor: Cursor): Extraction[] {
  return cursor.peek() === "IDENTIFIER" ? parseList(cursor, parseExtraction) : [];
}

function parseExtraction(cursor: Cursor): Extraction {
  const label = cursor.expectText("IDENTIFIER");
  return { label, path: cursor.skip("=") ? cursor.expectText("STRING") : label };
}

/** Parses the expression of `regexp` or `pattern`, and checks it. */
function parsePattern(cursor: Cursor, kind: "regexp" | "pattern"): string {
  const { token } = cursor;
  const pattern = cursor.expectText("STRING");
  if (kind === "regexp") cursor.countRegex(pattern, token);
  const error = kind === "regexp" ? regexpStageError(pattern) : patternStageError(pattern);
  if (error !== undefined) throw cursor.invalid(error, token);
  return pattern;
}

function parseFormat(cursor: Cursor): LabelFormat {
  const label = cursor.expectText("IDENTIFIER");
  cursor.expect("=");
  if (cursor.peek() === "STRING") {
    return { kind: "template", label, template: cursor.expectText("STRING") };
  }
  return { kind: "rename", label, source: cursor.expectText("IDENTIFIER", "STRING") };
}

function parseTarget(cursor: Cursor): LabelTarget {
  const name = cursor.expectText("IDENTIFIER");
  return ["=", "!=", "=~", "!~"].includes(cursor.peek())
    ? { kind: "matcher", matcher: parseMatcherValue(cursor, name) }
    : { kind: "name", name };
}

function printTargets(targets: readonly LabelTarget[]): string {
  return targets
    .map((target) => (target.kind === "name" ? target.name : formatMatcher(target.matcher)))
    .join(",");
}

type Joint = "and" | "or" | "comma";

/**
 * Parses `a="b" and c>5 or d=ip("..")`. `and` binds tighter than `or`, both to the left; behind a comma, or where two
 * filters merely follow each other, everything to the right belongs together. An explicit stack keeps long chains
 * off the call stack.
 */
export function parseLabelFilter(cursor: Cursor): LabelFilter {
  const operands: LabelFilter[] = [parsePrimary(cursor)];
  const joints: Joint[] = [];
  for (;;) {
    const joint = jointAt(cursor);
    if (joint === undefined) break;
    while (joints.length > 0 && bindsBefore(joints[joints.length - 1] as Joint, joint)) {
      reduce(operands, joints);
    }
    joints.push(joint);
    operands.push(parsePrimary(cursor));
  }
  while (joints.length > 0) reduce(operands, joints);
  return operands[0] as LabelFilter;
}

/** Steps over `and`, `or` or a comma; two filters that merely follow each other are joined as by a comma. */
function jointAt(cursor: Cursor): Joint | undefined {
  const type = cursor.peek();
  if (type === "and" || type === "or" || type === ",") {
    cursor.advance();
    return type === "," ? "comma" : type;
  }
  return type === "IDENTIFIER" || type === "(" ? "comma" : undefined;
}

/** Whether a joint waiting on the stack takes its right side before the next one does. */
function bindsBefore(waiting: Joint, next: Joint): boolean {
  if (waiting === "comma" || next === "comma") return false;
  return waiting === "and" || next === "or";
}

function reduce(operands: LabelFilter[], joints: Joint[]): void {
  const right = operands.pop() as LabelFilter;
  const left = operands.pop() as LabelFilter;
  operands.push({ kind: joints.pop() === "or" ? "or" : "and", left, right });
}

function parsePrimary(cursor: Cursor): LabelFilter {
  if (cursor.peek() === "(") {
    cursor.enter(filterLevelsMax);
    cursor.advance();
    const inner = parseLabelFilter(cursor);
    cursor.close();
    cursor.leave();
    return inner;
  }
  const name = cursor.expectText("IDENTIFIER");
  const operator = cursor.token;
  switch (operator.type) {
    case "=~":
    case "!~":
      return { kind: "string", matcher: parseMatcherValue(cursor, name) };
    case "=":
    case "!=":
      if (cursor.peekNext() === "STRING") {
        return { kind: "string", matcher: parseMatcherValue(cursor, name) };
      }
      cursor.advance();
      if (cursor.peek() !== "ip") return parseComparison(cursor, name, operator);
      return {
        kind: "ip",
        name,
        op: operator.type === "=" ? "==" : "!=",
        value: parseIpCall(cursor),
      };
    case "==":
    case ">":
    case ">=":
    case "<":
    case "<=":
      cursor.advance();
      return parseComparison(cursor, name, operator);
    default:
      throw cursor.unexpected();
  }
}

function parseComparison(cursor: Cursor, name: string, operator: Token): LabelFilter {
  const op = (operator.type === "=" ? "==" : operator.type) as CompareOp;
  const token = cursor.token;
  switch (token.type) {
    case "DURATION":
      cursor.advance();
      return { kind: "duration", name, op, value: token.value as bigint };
    case "BYTES":
      cursor.advance();
      return { kind: "bytes", name, op, value: token.value as number };
    case "NUMBER":
      return { kind: "number", name, op, value: cursor.expectNumber() };
    case "+":
    case "-":
      return { kind: "number", name, op, value: parseSignedNumber(cursor) };
    default:
      throw cursor.unexpected();
  }
}

/** Parses a NUMBER with the sign that stands before it. */
export function parseSignedNumber(cursor: Cursor): number {
  const sign = cursor.advance();
  const value = cursor.expectNumber();
  return sign.type === "-" ? -value : value;
}

/** Parses the operator and the string of a matcher whose name has been read; the regex is checked here. */
function parseMatcherValue(cursor: Cursor, name: string): Matcher {
  const op = cursor.peek();
  if (op !== "=" && op !== "=~" && op !== "!~" && op !== "!=") {
    throw cursor.unexpected("=", "=~", "!~", "!=");
  }
  cursor.advance();
  const token = cursor.token;
  const value = cursor.expectText("STRING");
  if (op === "=~" || op === "!~") {
    cursor.countRegex(value, token);
    const error = regexError(value);
    if (error !== undefined) throw cursor.invalid(error, token);
  }
  return { name, op, value };
}

/** Parses `ip("...")` and gives the text of it. */
function parseIpCall(cursor: Cursor): string {
  cursor.expect("ip");
  cursor.expect("(");
  const value = cursor.expectText("STRING");
  cursor.expect(")");
  return value;
}
