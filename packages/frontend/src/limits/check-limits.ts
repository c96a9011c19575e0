import type { Expr, LogExpr, MetricExpr, QueryParams, RangeAggregation } from "@skald/logql";
import {
  compileRegex,
  formatGoDuration,
  formatPrometheusDuration,
  invalidArgument,
  limitReached,
} from "@skald/model";
import { nsOfMs, type QueryTenantLimits } from "./limits.js";

/** Refuses a query that its tenant's limits forbid; the texts are the reference's. */
export function checkQueryLimits(
  expr: Expr,
  range: Pick<QueryParams, "startNs" | "endNs" | "stepNs" | "limit">,
  limits: QueryTenantLimits,
): void {
  const lengthNs = range.endNs - range.startNs;
  checkLength(lengthNs, limits);
  if (expr.kind === "log") checkEntries(range.limit, limits);
  const aggregations = expr.kind === "log" ? [] : rangesOf(expr);
  const maxRangeNs = nsOfMs(limits.max_query_range);
  for (const { rangeNs } of aggregations) {
    if (maxRangeNs === 0n || rangeNs <= maxRangeNs) continue;
    throw limitReached(
      "max_query_range",
      `[interval] value exceeds limit: [${formatPrometheusDuration(rangeNs)}] > [${formatPrometheusDuration(maxRangeNs)}]`,
    );
  }
  if (range.stepNs > 0n) {
    for (const { rangeNs } of aggregations) checkWindows(rangeNs, lengthNs, limits);
  }
  checkMatchers(expr.kind === "log" ? [expr] : aggregations.map(({ log }) => log), limits);
}

/** Refuses texts that would take long to parse. They are not read yet, so the caller may be the main thread. */
export function checkTextSize(
  params: URLSearchParams,
  { max_query_bytes: max }: Pick<QueryTenantLimits, "max_query_bytes">,
): void {
  if (max === 0) return;
  const texts = textParams.flatMap((name) => params.getAll(name));
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size <= max) return;
  throw limitReached(
    "max_query_bytes",
    `the query has ${size} bytes, the limit is ${max} (max_query_bytes); shorten the query or raise the limit of the tenant`,
  );
}

/** Parameters that are parsed as LogQL or compiled as a regular expression. */
const textParams = ["query", "match[]", "match", "regexp"];

export function checkLength(lengthNs: bigint, limits: QueryTenantLimits): void {
  const maxNs = nsOfMs(limits.max_query_length);
  if (maxNs === 0n || lengthNs <= maxNs) return;
  throw limitReached(
    "max_query_length",
    `the query time range exceeds the limit (query length: ${formatGoDuration(lengthNs)}, limit: ${formatPrometheusDuration(maxNs)})`,
  );
}

/**
 * A window belongs to the length of a query. A long graph is cut into parts no longer than its windows, and each part
 * is held against the limit on its own.
 */
function checkWindows(rangeNs: bigint, lengthNs: bigint, limits: QueryTenantLimits): void {
  checkLength(rangeNs + (lengthNs < rangeNs ? lengthNs : rangeNs), limits);
}

function checkEntries(limit: number, limits: QueryTenantLimits): void {
  const max = limits.max_entries_limit_per_query;
  if (max === 0 || limit <= max) return;
  throw limitReached(
    "max_entries_limit_per_query",
    `max entries limit per query exceeded, limit > max_entries_limit_per_query (${limit} > ${max})`,
  );
}

function checkMatchers(logs: readonly LogExpr[], limits: QueryTenantLimits): void {
  const max = limits.max_streams_matchers_per_query;
  const least = limits.minimum_labels_number;
  const count = logs.reduce((sum, log) => sum + log.matchers.length, 0);
  if (max > 0 && count > max) {
    throw limitReached(
      "max_streams_matchers_per_query",
      `max streams matchers per query exceeded, matchers-count > limit (${count} > ${max})`,
    );
  }
  for (const { matchers } of logs) {
    const present = matchers.map((matcher) => matcher.name);
    const missing = limits.required_labels.filter((name) => !present.includes(name));
    if (missing.length > 0) {
      throw limitReached(
        "required_labels",
        `stream selector is missing required matchers [${missing.join(", ")}], labels present in the query were [${present.join(", ")}]`,
      );
    }
    if (present.length < least) {
      throw limitReached(
        "minimum_labels_number",
        `stream selector has less label matchers than required: (present: [${present.join(", ")}], number_present: ${present.length}, required_number_label_matchers: ${least})`,
      );
    }
  }
}

/** Every range aggregation of an expression. */
export function rangesOf(expr: MetricExpr): RangeAggregation[] {
  switch (expr.kind) {
    case "range_aggregation":
      return [expr];
    case "vector_aggregation":
    case "label_replace":
      return rangesOf(expr.inner);
    case "binary":
      return [...rangesOf(expr.left), ...rangesOf(expr.right)];
    case "literal":
    case "vector":
      return [];
  }
}

/** A query as rules about it see it. */
export interface AskedQuery {
  /** As it was sent. */
  readonly text: string;
  readonly expr: Expr;
  /** `a=b,c=d`: what the client says about it. */
  readonly tags: string;
}

type Rule = QueryTenantLimits["blocked_queries"][number];

/** Refuses a query that an operator has blocked. Throws invalid_argument. */
export function checkBlocked(query: AskedQuery, { blocked_queries }: QueryTenantLimits): void {
  if (blocked_queries.some((rule) => isBlocked(query, rule)))
    throw invalidArgument("query blocked by policy");
}

function isBlocked(query: AskedQuery, rule: Rule): boolean {
  const { hash, pattern, query_tags, types } = rule;
  if (types.length > 0 && !types.includes(queryKind(query.expr))) return false;
  if (query_tags !== "" && !hasTags(query.tags, query_tags)) return false;
  const text = query.text.trim();
  if (hash !== 0) return hash === fnv1(text);
  if (pattern === "") return true;
  return rule.regex ? regexOf(pattern)(text) : pattern.trim() === text;
}

/** `limited` are log queries without stages: they end with their limit. */
export function queryKind(expr: Expr): "metric" | "filter" | "limited" {
  if (expr.kind !== "log") return "metric";
  return expr.stages.length > 0 ? "filter" : "limited";
}

function hasTags(given: string, wanted: string): boolean {
  const tags = new Set(tagsOf(given));
  return tagsOf(wanted).every((tag) => tags.has(tag));
}

function tagsOf(text: string): string[] {
  return text
    .split(",")
    .map((tag) => tag.trim().toLowerCase())
    .filter((tag) => tag !== "");
}

/** Expressions of rules, compiled; rules change with the overrides only. */
const compiled = new Map<string, (text: string) => boolean>();
const maxCompiled = 1000;

function regexOf(pattern: string): (text: string) => boolean {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const regex = compileRegex(pattern, { anchored: false });
  const matches = (text: string) => regex.test(text);
  if (compiled.size >= maxCompiled) compiled.clear();
  compiled.set(pattern, matches);
  return matches;
}

const encoder = new TextEncoder();

/** FNV-1, not 1a, of 32 bits, over UTF-8. */
function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of encoder.encode(text)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return hash >>> 0;
}
