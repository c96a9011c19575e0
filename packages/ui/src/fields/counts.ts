import type { LogExpr } from "@skald/logql/syntax";
import { printQuery } from "@skald/logql/syntax";
import { currentTenant } from "../api/client.js";
import type { Span } from "../api/fields.js";
import { fetchInstant, type Line } from "../api/lines.js";
import { bytesToRead, fetchExplanation } from "../api/stats.js";
import { parsedOf } from "../lines/row.js";
import { countable } from "../query/derive.js";

export interface ValueCount {
  readonly value: string;
  readonly count: number;
}

export interface Counts {
  readonly values: readonly ValueCount[];
  /** Lines that were counted, where they are not all. */
  readonly sampled: number | undefined;
}

export interface CountedField {
  readonly name: string;
  /** A label of the stream, or else the parser that finds it; undefined for metadata. */
  readonly parser: string | undefined;
  readonly isLabel: boolean;
}

const bytesMax = 256 * 1024 * 1024;
const kept = new Map<string, Counts>();
const keptMax = 200;

/**
 * The most frequent values of a field in all lines of a query. Where that would read too much, the lines on show are counted
 * instead, unless `all` asks for the whole.
 */
export async function countValues(
  field: CountedField,
  log: LogExpr,
  options: {
    readonly span: Span;
    readonly limit: number;
    readonly shown: readonly Line[];
    readonly all: boolean;
    readonly signal: AbortSignal;
  },
): Promise<Counts> {
  const { span, limit, shown, all, signal } = options;
  const key = JSON.stringify([currentTenant(), field, printQuery(log), span, limit, all]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const query = countQuery(field, log, span, limit);
  if (!all) {
    const explained = await fetchExplanation(query, span, limit, signal);
    if (explained !== undefined && bytesToRead(explained) > bytesMax)
      return countShown(field, shown, limit);
  }
  const { series } = await fetchInstant({ query, time: span.endNs }, signal);
  const values = series
    .map(({ labels, points }) => ({ value: labels[field.name] ?? "", count: points[0]?.[1] ?? 0 }))
    .filter(({ value, count }) => value !== "" && count > 0)
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
  const counts = { values, sampled: undefined };
  if (kept.size >= keptMax) kept.clear();
  kept.set(key, counts);
  return counts;
}

/** Counts the values of a field; lines that a parser cannot read would else make the whole answer an error. */
function countQuery(field: CountedField, log: LogExpr, span: Span, limit: number): string {
  const hasKind = log.stages.some(({ kind }) => kind === field.parser);
  const parser = field.parser === undefined || field.isLabel || hasKind ? "" : ` | ${field.parser}`;
  const ms = (BigInt(span.endNs) - BigInt(span.startNs)) / 1_000_000n;
  const window = ms % 1000n === 0n ? `${ms / 1000n}s` : `${ms}ms`;
  const counted = `count_over_time(${countable(log, parser)} [${window}])`;
  return `topk(${limit}, sum by (${field.name}) (${counted}))`;
}

function countShown(field: CountedField, lines: readonly Line[], limit: number): Counts {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const value = valueIn(line, field.name);
    if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const values = [...counts].map(([value, count]) => ({ value, count }));
  values.sort((a, b) => b.count - a.count);
  return { values: values.slice(0, limit), sampled: lines.length };
}

/** The value of a label, of metadata or of a field in the text of a line. */
export function valueIn(line: Line, name: string): string | undefined {
  const { stream, metadata, parsed } = line;
  const known = parsed[name] ?? metadata[name] ?? stream.labels[name];
  if (known !== undefined) return known;
  const { fields, message } = parsedOf(line);
  const found = fields.find(([one]) => one === name)?.[1];
  return found ?? (/^(?:msg|message)$/.test(name) ? message : undefined);
}
