import { callJson } from "./client.js";
import type { Span } from "./fields.js";

export interface Holding {
  readonly streams: number;
  readonly bytes: number;
  readonly entries: number;
}

/** How much a selector holds. */
export async function fetchHolding(
  selector: string,
  span: Span,
  signal?: AbortSignal,
): Promise<Holding> {
  return callJson<Holding>("loki/api/v1/index/stats", {
    params: { query: selector, start: span.startNs, end: span.endNs },
    signal,
  });
}

export interface Volume {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [number, number])[];
}

/** Bytes by values of a label, over the range or by step. */
export async function fetchVolume(
  params: { query: string; label: string; limit: number; step?: number },
  span: Span,
  signal?: AbortSignal,
): Promise<Volume[]> {
  const { query, label, limit, step } = params;
  const { data } = await callJson<{
    data: {
      result: {
        metric: Record<string, string>;
        value?: [number, string];
        values?: [number, string][];
      }[];
    };
  }>(`loki/api/v1/index/${step === undefined ? "volume" : "volume_range"}`, {
    params: { query, targetLabels: label, limit, step, start: span.startNs, end: span.endNs },
    signal,
  });
  return data.result.map(({ metric, value, values }) => ({
    labels: metric,
    points: (values ?? (value === undefined ? [] : [value])).map(
      ([at, text]) => [at, Number(text)] as const,
    ),
  }));
}
