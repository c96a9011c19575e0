import { invalidArgument, SkaldError } from "@skald/model";

/** Where in a query something is wrong; the offset counts UTF-16 code units, line and column start at 1. */
export interface Position {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
}

/** What a parse error carries in `SkaldError.detail`. */
export interface ParseErrorDetail {
  readonly kind: "parse_error";
  /** The reason without the `parse error at ...` in front. */
  readonly reason: string;
  readonly position: Position;
  /** The source line with a caret under the position, and a suggestion where there is one; several lines. */
  readonly hint: string;
}

interface ParseErrorPlace {
  readonly source: string;
  readonly position: Position;
  /** How the message names the place: `full`, with line 0 (`lineless`), or not at all (`none`). */
  readonly shown?: "full" | "lineless" | "none";
  readonly suggestion?: string | undefined;
}

/** The error of a query that cannot be parsed: invalid_argument with the text clients know, and a ParseErrorDetail. */
export function parseError(reason: string, place: ParseErrorPlace): SkaldError {
  const { source, position, shown = "full", suggestion } = place;
  const line = shown === "lineless" ? 0 : position.line;
  const where = shown === "none" ? " " : ` at line ${line}, col ${position.column}`;
  const caret = caretLines(source, position);
  const detail: ParseErrorDetail = {
    kind: "parse_error",
    reason,
    position,
    hint: suggestion === undefined ? caret : `${caret}\n${suggestion}`,
  };
  return invalidArgument(`parse error${where}: ${reason}`, { detail });
}

/** The detail of a parse error; undefined for anything else. */
export function parseErrorDetail(error: unknown): ParseErrorDetail | undefined {
  if (!(error instanceof SkaldError)) return undefined;
  const detail = error.detail as ParseErrorDetail | undefined;
  return detail?.kind === "parse_error" ? detail : undefined;
}

const hintColumnsMax = 100;

/** The line around a position, cut to 100 columns, and a caret below it. */
function caretLines(source: string, position: Position): string {
  const lineStart = source.slice(0, position.offset).lastIndexOf("\n") + 1;
  const lineEnd = source.indexOf("\n", position.offset);
  const until = lineEnd < 0 ? source.length : lineEnd;
  const from = Math.max(lineStart, Math.min(position.offset - 60, until - hintColumnsMax));
  const shown = source.slice(from, Math.min(until, from + hintColumnsMax)).replaceAll("\t", " ");
  const blanks = [...source.slice(from, position.offset)].length;
  return `${shown}\n${" ".repeat(blanks)}^`;
}

/** The candidate closest to a word, if it is close enough to be a slip of the keyboard. */
export function nearestWord(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  if (wanted.length > wordLengthMax) return undefined;
  let best: string | undefined;
  let bestDistance = Math.min(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, candidate);
    if (distance < bestDistance && distance > 0) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

const wordLengthMax = 32;

/** Levenshtein distance, with a swap of neighbours counted as one edit. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(
        (previous[j] as number) + 1,
        (current[j - 1] as number) + 1,
        (previous[j - 1] as number) + cost,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (before[j - 2] as number) + 1);
      }
      current.push(best);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length] as number;
}
