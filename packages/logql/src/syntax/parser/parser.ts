import { invalidArgument, type Matcher } from "@skald/model";
import type { Expr } from "../ast.js";
import { emptyCompatibleReason, isEmptyCompatible, isWithinHeight } from "../check.js";
import { parseError } from "../errors.js";
import { Cursor, expressionLevelsMax, filterLevelsMax, tooDeep } from "./cursor.js";
import { parseExpr } from "./expr.js";

/** Longest query that is read, in bytes of UTF-8. */
export const queryBytesMax = 131_072;

/** Parses and checks a query. Throws invalid_argument with a ParseErrorDetail. */
export function parseQuery(text: string): Expr {
  return parse(text, isEmptyCompatible);
}

export interface ParseSelectorOptions {
  /**
   * Which selectors pass although they match a stream without labels: `none`, the `bare` selector `{}`, or `all`.
   * `none` if not given.
   */
  readonly emptyCompatible?: "none" | "bare" | "all";
}

/** Parses a selector without stages, such as `match[]`. Throws invalid_argument. */
export function parseSelector(text: string, options: ParseSelectorOptions = {}): Matcher[] {
  const { emptyCompatible = "none" } = options;
  const expr = parse(text, (matchers) => {
    if (emptyCompatible === "all" || (emptyCompatible === "bare" && matchers.length === 0)) {
      return false;
    }
    return isEmptyCompatible(matchers);
  });
  if (expr.kind === "log" && expr.stages.length === 0) return [...expr.matchers];
  throw invalidArgument("only label matchers are supported");
}

function parse(text: string, isRefused: (matchers: readonly Matcher[]) => boolean): Expr {
  checkText(text);
  const cursor = new Cursor(text);
  const expr = parseExpr(cursor);
  if (cursor.peek() !== "$end") throw cursor.unexpected();
  for (const { matchers, token } of cursor.selectors) {
    if (isRefused(matchers)) throw cursor.invalid(emptyCompatibleReason, token);
  }
  // A tree is at most as high as there are characters.
  const levels = { expression: expressionLevelsMax, filter: filterLevelsMax };
  if (text.length > levels.expression && !isWithinHeight(expr, levels)) {
    throw tooDeep(text, cursor.token);
  }
  return expr;
}

const loneSurrogate = /\p{Cs}/u;

function checkText(text: string): void {
  const place = { source: "", position: { offset: 0, line: 1, column: 1 }, shown: "none" } as const;
  const bytes = utf8Length(text, queryBytesMax);
  if (bytes > queryBytesMax) {
    throw parseError(`input size too long (${bytes} > ${queryBytesMax})`, place);
  }
  if (loneSurrogate.test(text)) throw parseError("invalid UTF-8 encoding", place);
}

/**
 * Bytes of a text in UTF-8; not counted where it is short enough in any case. The second half of a surrogate pair
 * counts one and the first three.
 */
function utf8Length(text: string, enough: number): number {
  if (text.length * 3 <= enough) return text.length;
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80 || (code >= 0xdc00 && code < 0xe000)) bytes += 1;
    else bytes += code < 0x800 ? 2 : 3;
  }
  return bytes;
}
