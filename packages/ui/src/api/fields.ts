import { callJson, currentTenant, type Params } from "./client.js";

/** What a field of lines looks like in a sample. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly values: number;
  /** The stages that find it, the best first; empty for structured metadata. */
  readonly parsers: readonly string[];
}

export interface LabelInfo {
  readonly name: string;
  readonly values: number;
}

/** Start and end, in ns as text. */
export interface Span {
  readonly startNs: string;
  readonly endNs: string;
}

/** The labels of the streams that a selector finds, and how many values each has. */
export async function fetchLabels(
  selector: string | undefined,
  span: Span,
  signal?: AbortSignal,
): Promise<LabelInfo[]> {
  const { detectedLabels = [] } = await ask<{
    detectedLabels?: { label: string; cardinality: number }[];
  }>("loki/api/v1/detected_labels", { query: selector }, span, signal);
  return detectedLabels.map(({ label, cardinality }) => ({ name: label, values: cardinality }));
}

/** The fields of a sample of the lines that a query finds. */
export async function fetchFields(
  query: string,
  span: Span,
  options: { readonly lineLimit: number; readonly signal?: AbortSignal | undefined },
): Promise<Field[]> {
  const { fields = [] } = await ask<{
    fields?: { label: string; type: string; cardinality: number; parsers: string[] | null }[];
  }>("loki/api/v1/detected_fields", { query, line_limit: options.lineLimit }, span, options.signal);
  return fields.map(({ label, type, cardinality, parsers }) => ({
    name: label,
    type,
    values: cardinality,
    parsers: parsers ?? [],
  }));
}

/** All values of a label. */
export async function fetchLabelValues(
  name: string,
  selector: string | undefined,
  span: Span,
  signal?: AbortSignal,
): Promise<string[]> {
  const path = `loki/api/v1/label/${encodeURIComponent(name)}/values`;
  return (await ask<{ data?: string[] }>(path, { query: selector }, span, signal)).data ?? [];
}

/** Values of a field in a sample; `complete` is false where the sample has more. */
export async function fetchFieldValues(
  name: string,
  query: string,
  span: Span,
  signal?: AbortSignal,
): Promise<string[]> {
  const path = `loki/api/v1/detected_field/${encodeURIComponent(name)}/values`;
  const params = { query, line_limit: 500 };
  return (await ask<{ values?: string[] }>(path, params, span, signal)).values ?? [];
}

const keptMs = 60_000;
const minuteNs = 60_000_000_000n;
const kept = new Map<string, { readonly at: number; readonly answer: unknown }>();
const keptMax = 200;

/** Asks, or returns the answer of the last minute to the same question for about the same range. */
async function ask<T>(
  path: string,
  params: Params,
  span: Span,
  signal: AbortSignal | undefined,
): Promise<T> {
  const minutes = [span.startNs, span.endNs].map((ns) => BigInt(ns) / minuteNs);
  const key = JSON.stringify([currentTenant(), path, params, minutes.join()]);
  const known = kept.get(key);
  if (known !== undefined && Date.now() - known.at < keptMs) return known.answer as T;
  const all = { ...params, start: span.startNs, end: span.endNs };
  const answer = await callJson<T>(path, { params: all, signal });
  if (isEmpty(answer)) return answer;
  if (kept.size >= keptMax) kept.clear();
  kept.set(key, { at: Date.now(), answer });
  return answer;
}

/** Whether an answer has nothing yet; such a one is asked again, because the first lines may be on their way. */
function isEmpty(answer: unknown): boolean {
  return Object.values(answer as object).every((one) => !Array.isArray(one) || one.length === 0);
}
