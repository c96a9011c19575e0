import { formatGoDuration, formatMatcher, type Matcher, quote, unreachable } from "@skald/model";
import type {
  Extraction,
  LabelFilter,
  LabelFormat,
  LabelTarget,
  LineFilterStage,
  LineFilterValue,
  LogfmtStage,
  Stage,
  Unwrap,
} from "./ast.js";
import { formatBytes, formatPlain, isSimpleRegex } from "./print-literal.js";

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
  const values = alternatives.map(printLineFilterValue);
  return `${op} ${values.join(op.startsWith("|") ? " or " : ` ${op} `)}`;
}

function printLineFilterValue({ kind, value }: LineFilterValue): string {
  return kind === "ip" ? `ip(${quote(value)})` : quote(value);
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
