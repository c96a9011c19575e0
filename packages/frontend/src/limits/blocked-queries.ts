import type { Expr } from "@skald/logql";
import { compileRegex, invalidArgument } from "@skald/model";
import type { QueryTenantLimits } from "./limits.js";

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
