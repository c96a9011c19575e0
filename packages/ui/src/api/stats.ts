import { callJson } from "./client.js";
import type { Span } from "./fields.js";

/** What a query will read, by indexes and headers alone. */
export interface Explanation {
  readonly kind: string;
  readonly parts: readonly ExplainedPart[];
  readonly cached: boolean;
  readonly exact: boolean;
  /** The limit that will refuse the query. */
  readonly refusedBy?: string | null;
}

interface ExplainedPart {
  readonly selector: string;
  readonly streams: number;
  readonly entries: number;
  readonly bytes: number;
  readonly blocks: number;
  readonly blocksToRead: number;
  readonly bytesToRead: number;
  readonly answeredBy: "headers" | "scan";
}

/** The explanation of a query; undefined where the server has none to give. */
export async function fetchExplanation(
  query: string,
  span: Span,
  limit: number,
  signal?: AbortSignal,
): Promise<Explanation | undefined> {
  const params = { query, start: span.startNs, end: span.endNs, limit, direction: "backward" };
  try {
    return await callJson<Explanation>("service/api/v1/explain", { params, signal });
  } catch {
    // The query itself says what is wrong with it.
    return undefined;
  }
}

/**
 * About how many bytes a query reads. Where not all headers were looked at, the server names the most that may be, which is
 * often many times what its streams have.
 */
export function bytesToRead({ parts, exact }: Explanation): number {
  return parts.reduce(
    (sum, one) => sum + (exact ? one.bytesToRead : Math.min(one.bytesToRead, one.bytes)),
    0,
  );
}

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
