import {
  type Expr,
  factsOf,
  formatQuery,
  type LabelFilter,
  type LogExpr,
  parseQuery,
  printQuery,
  printSelector,
  type Stage,
} from "@skald/logql/syntax";
import type { Range } from "../state/range.js";
import { second, stepFor } from "../state/range.js";
import { escapeRegex } from "./edit.js";

/** Queries that the page makes of the user's. */

export function tryParse(text: string): Expr | undefined {
  try {
    return parseQuery(text);
  } catch {
    return undefined;
  }
}

export function formatted(text: string): string {
  const expr = tryParse(text);
  return expr === undefined || /#|\/\*|\/\//.test(text) ? text : formatQuery(expr);
}

/** The first log query in an expression; undefined for those of numbers alone. */
export function logIn(expr: Expr): LogExpr | undefined {
  switch (expr.kind) {
    case "log":
      return expr;
    case "range_aggregation":
      return expr.log;
    case "vector_aggregation":
    case "label_replace":
      return logIn(expr.inner);
    case "binary":
      return logIn(expr.left) ?? logIn(expr.right);
    default:
      return undefined;
  }
}

export function selectorText(log: LogExpr): string {
  return printSelector(log.matchers);
}

/** The query as one that counts: stages that can fail would else make the whole answer an error. */
export function countable(log: LogExpr, more = ""): string {
  const fails = log.stages.some(canFail) || more !== "";
  const drop = fails ? " | drop __error__, __error_details__" : "";
  return `${printQuery(log)}${more}${drop}`;
}

function canFail(stage: Stage): boolean {
  return factsOf(stage).marksErrors || (stage.kind === "label_filter" && compares(stage.filter));
}

function compares(filter: LabelFilter): boolean {
  if (filter.kind === "and" || filter.kind === "or")
    return compares(filter.left) || compares(filter.right);
  return filter.kind !== "string";
}

/** Counts by level in buckets that together are exactly the range. */
export interface Buckets {
  readonly query: string;
  readonly start: string;
  readonly end: string;
  /** Seconds. */
  readonly step: number;
  readonly count: number;
}

const bucketsMax = 120;

export function bucketsFor(log: LogExpr, range: Range): Buckets {
  const lengthNs = range.toNs - range.fromNs;
  const nice = BigInt(stepFor(range, bucketsMax)) * second;
  const exactMs = lengthNs / BigInt(bucketsMax) / 1_000_000n + 1n;
  const stepNs = lengthNs % nice === 0n ? nice : exactMs * 1_000_000n;
  const count = Number((lengthNs + stepNs - 1n) / stepNs);
  const window = `${stepNs / 1_000_000n}ms`;
  const first = range.fromNs + stepNs - 1n;
  return {
    query: `sum by (detected_level) (count_over_time(${countable(log)} [${window}]))`,
    start: String(first),
    end: String(first + stepNs * BigInt(count - 1)),
    step: Number(stepNs) / 1e9,
    count,
  };
}

/** The texts of line filters that lines are marked by, as one expression. */
export function needlesOf(log: LogExpr): RegExp | undefined {
  const texts = log.stages.flatMap((stage) => {
    if (stage.kind !== "line_filter" || (stage.op !== "|=" && stage.op !== "|~")) return [];
    return stage.alternatives
      .filter(({ kind }) => kind === "text")
      .flatMap(({ value }) => (stage.op === "|=" ? [escapeRegex(value)] : plainParts(value)));
  });
  const wanted = texts.filter((text) => text !== "" && text !== "(?i)");
  if (wanted.length === 0) return undefined;
  const ignoresCase = wanted.some((text) => text.startsWith("(?i)"));
  const source = wanted.map((text) => text.replace(/^\(\?i\)/, "")).join("|");
  return new RegExp(source, ignoresCase ? "gi" : "g");
}

/** Expressions without metacharacters but `|` and a leading `(?i)`. */
function plainParts(regex: string): string[] {
  const flag = regex.startsWith("(?i)") ? "(?i)" : "";
  const body = regex.slice(flag.length);
  return /[\\^$.*+?()[\]{}]/.test(body) ? [] : body.split("|").map((part) => flag + part);
}

/** Names of fields that the query speaks of, in its order. */
export function namedFields(log: LogExpr): string[] {
  const names: string[] = [];
  const visit = (filter: LabelFilter): void => {
    if (filter.kind === "and" || filter.kind === "or") {
      visit(filter.left);
      visit(filter.right);
    } else names.push(filter.kind === "string" ? filter.matcher.name : filter.name);
  };
  for (const stage of log.stages) if (stage.kind === "label_filter") visit(stage.filter);
  return names;
}

const units: Readonly<Record<string, string>> = {
  rate: "lines per second, ",
  count_over_time: "lines, ",
  bytes_rate: "bytes per second, ",
  bytes_over_time: "bytes, ",
};

/** What the values of a metric query are, for its sums and ranges; empty for others. */
export function unitOf(expr: Expr | undefined): string {
  if (expr?.kind === "vector_aggregation") {
    return /^(?:count|std)/.test(expr.op) ? "" : unitOf(expr.inner);
  }
  const isPlain = expr?.kind === "range_aggregation" && expr.unwrap === undefined;
  return isPlain ? (units[expr.op] ?? "") : "";
}
