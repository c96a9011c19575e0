import {
  formatGoDuration,
  formatMatcher,
  formatPrometheusDuration,
  type Matcher,
  quote,
  unreachable,
} from "@skald/model";
import { formatGoFloat, formatSample } from "../go/numbers.js";
import type {
  BinaryExpr,
  Expr,
  Extraction,
  Grouping,
  LabelFilter,
  LabelFormat,
  LabelReplace,
  LabelTarget,
  LineFilterStage,
  LogExpr,
  LogfmtStage,
  RangeAggregation,
  Stage,
  Unwrap,
  VectorAggregation,
} from "./ast.js";
import { lineFilterFacts } from "./ast.js";

/**
 * Prints a query on one line; parsing the text gives the same tree. One tree has no text and must not be built: a
 * drop or keep that ends in a bare name, then a line filter `!=` or `!~`, which reads as a matcher of that name.
 */
export function printQuery(expr: Expr): string {
  return printWith(expr, printQuery);
}

/** Prints a node, given a way to print the expressions inside it. */
export function printWith(expr: Expr, printInner: (inner: Expr) => string): string {
  switch (expr.kind) {
    case "log":
      return printLog(expr);
    case "literal":
      return formatShortest(expr.value);
    case "vector":
      return `vector(${formatSixDecimals(expr.value)})`;
    case "range_aggregation":
      return printRangeAggregation(expr);
    case "vector_aggregation":
      return printVectorAggregation(expr, printInner(expr.inner));
    case "binary":
      return printBinary(expr, printInner(expr.left), printInner(expr.right));
    case "label_replace":
      return `label_replace(${printInner(expr.inner)},${printReplaceArguments(expr).join(",")})`;
    default:
      return unreachable(expr);
  }
}

export function printLog({ matchers, stages }: LogExpr): string {
  return [printSelector(matchers), ...stages.map(printStage)].join(" ");
}

function printRangeAggregation(expr: RangeAggregation): string {
  const { op, parameter, log, unwrap, rangeNs, offsetNs, grouping } = expr;
  const first = parameter === undefined ? "" : `${formatShortest(parameter)},`;
  const body = [printLog(log), ...(unwrap === undefined ? [] : printUnwrap(unwrap))].join(" ");
  const range = `[${formatPrometheusDuration(rangeNs)}]`;
  const offset = offsetNs === 0n ? "" : ` offset ${formatGoDuration(offsetNs)}`;
  const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ",")}`;
  return `${op}(${first}${body}${range}${offset})${groups}`;
}

function printVectorAggregation(expr: VectorAggregation, inner: string): string {
  const { op, parameter, grouping } = expr;
  const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ",")}`;
  const first = parameter === undefined ? "" : `${formatPlain(parameter)},`;
  return `${op}${groups}(${first}${inner})`;
}

/** `by (a,b)` or `without ()`. */
export function printGrouping({ without, labels }: Grouping, separator: string): string {
  return `${without ? "without" : "by"} (${labels.join(separator)})`;
}

function printBinary(expr: BinaryExpr, left: string, right: string): string {
  const blank = expr.matching !== undefined && expr.matching.group === undefined ? " " : "";
  return `(${left} ${printOperator(expr, right, ",")}${blank} ${right})`;
}

/** An operator with its modifiers: `/ on (a) group_left (b)`; the text of its right side decides about brackets. */
export function printOperator(expr: BinaryExpr, right: string, separator: string): string {
  const { op, bool, matching } = expr;
  const head = bool ? `${op} bool` : op;
  if (matching === undefined) return head;
  const { on, labels, group } = matching;
  const match = `${head} ${on ? "on" : "ignoring"} (${labels.join(separator)})`;
  if (group === undefined) return match;
  // A parenthesis behind a bare group_left would be read as its labels.
  const isBare = group.include.length === 0 && !right.trimStart().startsWith("(");
  return `${match} group_${group.side}${isBare ? "" : ` (${group.include.join(separator)})`}`;
}

export function printReplaceArguments(expr: LabelReplace): string[] {
  return [expr.destination, expr.replacement, expr.source, expr.regex].map(quote);
}

/** `{a="b", c=~"d"}` */
export function printSelector(matchers: readonly Matcher[]): string {
  return `{${matchers.map(formatMatcher).join(", ")}}`;
}

/** A stage with what introduces it: `|= "x"`, `| json`, `| status>=500`. */
export function printStage(stage: Stage): string {
  switch (stage.kind) {
    case "line_filter":
      return printLineFilter(stage);
    case "label_filter":
      return `| ${printLabelFilter(stage.filter)}`;
    case "json":
      return `| json${printExtractions(stage.extractions)}`;
    case "logfmt":
      return printLogfmt(stage);
    case "regexp":
    case "pattern":
      return `| ${stage.kind} ${quote(stage.pattern)}`;
    case "unpack":
    case "decolorize":
      return `| ${stage.kind}`;
    case "line_format":
      return `| line_format ${quote(stage.template)}`;
    case "label_format":
      return `| label_format ${stage.formats.map(printFormat).join(",")}`;
    case "drop":
    case "keep":
      return `| ${stage.kind} ${stage.targets.map(printTarget).join(",")}`;
    default:
      return unreachable(stage);
  }
}

/** Alternatives of a negative filter are filters of their own. */
function printLineFilter({ op, alternatives }: LineFilterStage): string {
  const values = alternatives.map(({ kind, value }) =>
    kind === "ip" ? `ip(${quote(value)})` : quote(value),
  );
  return `${op} ${values.join(lineFilterFacts[op].negated ? ` ${op} ` : " or ")}`;
}

function printLogfmt({ strict, keepEmpty, extractions }: LogfmtStage): string {
  const flags = `${strict ? " --strict" : ""}${keepEmpty ? " --keep-empty" : ""}`;
  return `| logfmt${flags}${printExtractions(extractions)}`;
}

function printExtractions(extractions: readonly Extraction[]): string {
  if (extractions.length === 0) return "";
  return ` ${extractions.map(({ label, path }) => `${label}=${quote(path)}`).join(",")}`;
}

function printFormat(format: LabelFormat): string {
  const value = format.kind === "rename" ? format.source : quote(format.template);
  return `${format.label}=${value}`;
}

function printTarget(target: LabelTarget): string {
  return target.kind === "name" ? target.name : formatMatcher(target.matcher);
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

/** A regex that is more than a choice of words stands in back quotes, where that is possible. */
function printStringFilter(matcher: Matcher): string {
  const { name, op, value } = matcher;
  const regex = op === "=~" || op === "!~";
  if (!regex || value.includes("`") || isSimpleRegex(value)) return formatMatcher(matcher);
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
function formatSixDecimals(value: number): string {
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
