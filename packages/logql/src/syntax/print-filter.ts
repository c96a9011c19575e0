import { formatGoDuration, formatMatcher, type Matcher, quote, unreachable } from "@skald/model";
import { formatGoFloat, formatSample } from "../go/numbers.js";
import type { LabelFilter, Unwrap } from "./ast.js";

/** `{a="b", c=~"d"}` */
export function printSelector(matchers: readonly Matcher[]): string {
  return `{${matchers.map(formatMatcher).join(", ")}}`;
}

/** `a="b"`, `( a>=5 , b="c" )`, `( a or b )`; and and or always in parentheses. */
export function printLabelFilter(filter: LabelFilter): string {
  switch (filter.kind) {
    case "and":
      return `( ${printLabelFilter(filter.left)} , ${printLabelFilter(filter.right)} )`;
    case "or":
      return `( ${printLabelFilter(filter.left)} or ${printLabelFilter(filter.right)} )`;
    case "string":
      return printStringFilter(filter.matcher);
    case "number":
      return `${filter.name}${filter.op}${formatPlain(filter.value)}`;
    case "duration":
      return `${filter.name}${filter.op}${formatGoDuration(filter.value)}`;
    case "bytes":
      return `${filter.name}${filter.op}${formatBytes(filter.value)}`;
    case "ip":
      return `${filter.name}${filter.op === "==" ? "=" : filter.op}ip(${quote(filter.value)})`;
    default:
      return unreachable(filter);
  }
}

/** The regex of `=~` that is more than a choice of words stands in back quotes, where that is possible. */
function printStringFilter(matcher: Matcher): string {
  const { name, op, value } = matcher;
  if (op !== "=~" || value.includes("`") || isSimpleRegex(value)) return formatMatcher(matcher);
  return `${name}${op}\`${value}\``;
}

/** `| unwrap x`, `| unwrap duration(x)` and each filter behind it. */
export function printUnwrap({ label, conversion, filters }: Unwrap): string[] {
  const source = conversion === "none" ? label : `${conversion}(${label})`;
  return [`| unwrap ${source}`, ...filters.map((filter) => `| ${printLabelFilter(filter)}`)];
}

/** Go's shortest form: `7`, `0.25`, `1e+06`; with an exponent below 1e-4 and from 1e6 on. */
export function formatShortest(value: number): string {
  return formatSpecial(value) ?? formatGoFloat(value);
}

/** The shortest digits that read back to the same number, without an exponent: `1000000`, `0.000001`. */
export function formatPlain(value: number): string {
  return formatSpecial(value) ?? formatSample(value);
}

/** Six decimals, as in `vector(1.000000)`; more where six would change the value. */
export function formatSixDecimals(value: number): string {
  const plain = formatPlain(value);
  if (!Number.isFinite(value)) return plain;
  const [whole, fraction = ""] = plain.split(".");
  return `${whole}.${fraction.padEnd(6, "0")}`;
}

/** `1.0kB`, `20MB`: powers of 1000 with one decimal below ten; plain bytes where that would change the value. */
function formatBytes(bytes: number): string {
  const exact = `${formatPlain(bytes)}B`;
  if (bytes < 1000) return exact;
  let unit = 0;
  let scale = 1;
  while (unit < sizeUnits.length - 1 && bytes >= scale * 1000) {
    scale *= 1000;
    unit++;
  }
  const tenths = Math.floor((bytes / scale) * 10 + 0.5);
  const shown = tenths < 100 ? (tenths / 10).toFixed(1) : (tenths / 10).toFixed(0);
  const same = Math.trunc(Number(shown) * scale) === bytes;
  return same ? `${shown}${sizeUnits[unit]}` : exact;
}

const sizeUnits = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** What the grammar can only say as an operation that the parser folds. */
function formatSpecial(value: number): string | undefined {
  if (Number.isNaN(value)) return "(0 / 0)";
  if (value === Number.POSITIVE_INFINITY) return "(10 ^ 309)";
  return value === Number.NEGATIVE_INFINITY ? "(-10 ^ 309)" : undefined;
}

/**
 * True for an expression that only asks for words: literals joined by `|`, grouped, with `.*` or `.+` around them.
 * These are printed in double quotes behind a pipe, all others in back quotes.
 */
function isSimpleRegex(regex: string): boolean {
  return hasOnlyWords(regex) && !hasNeighbouringLetters(regex);
}

function hasOnlyWords(regex: string): boolean {
  const rest = regex
    .replace(/^\(\?i\)/, "")
    .replaceAll(/\\[^\w\s]/g, "x")
    .replaceAll(/\.[*+]/g, "");
  return !/[\\.[\]{}*+?^$]/.test(rest.replaceAll("(?:", "("));
}

/** `a|b` reads as the class `[ab]`. */
function hasNeighbouringLetters(regex: string): boolean {
  return /(?:^|[|(])[^|()\\.]\|[^|()\\.](?:$|[|)])/u.test(regex);
}
