import {
  formatSample,
  type LogResult,
  type MatrixResult,
  type QueryResult,
  type RowLabels,
  type VectorResult,
} from "@skald/logql";
import { formatLabels, type Labels, labelsToObject, nsPerMs, type QueryStats } from "@skald/model";
import { encodeStats } from "./stats.js";

export interface EncodeOptions {
  /** Keep index labels, structured metadata and parsed labels apart (`categorize-labels`). */
  readonly categorize: boolean;
}

/** The envelope of query and query_range as JSON text, ended by a line feed. */
export function encodeQueryResult(
  result: QueryResult | LogResult,
  stats: QueryStats,
  options: EncodeOptions,
): string {
  const warnings = result.warnings.length === 0 ? "" : `"warnings":${text(result.warnings)},`;
  const flags =
    options.categorize && result.kind === "streams" ? '"encodingFlags":["categorize-labels"],' : "";
  return `{"status":"success",${warnings}"data":{"resultType":"${result.kind}",${flags}"result":${encodeResult(result, options)},"stats":${encodeStats(stats)}}}\n`;
}

function encodeResult(result: QueryResult | LogResult, options: EncodeOptions): string {
  switch (result.kind) {
    case "streams":
      return encodeStreams(result, options);
    case "matrix":
      return encodeMatrix(result);
    case "vector":
      return encodeVector(result);
    case "scalar":
      // The reference writes the time of a scalar in whole milliseconds.
      return `[${result.atNs / nsPerMs},"${formatSample(result.value)}"]`;
  }
}

function encodeMatrix(result: MatrixResult): string {
  const { points } = result;
  const series = result.series.map(({ labels, at, values }) => {
    const samples: string[] = [];
    for (let i = 0; i < at.length; i++) {
      const time = points.startNs + BigInt(at[i] as number) * points.stepNs;
      samples.push(`[${seconds(time)},"${formatSample(values[i] as number)}"]`);
    }
    return `{"metric":${encodeLabels(labels)},"values":[${samples.join(",")}]}`;
  });
  return `[${series.join(",")}]`;
}

function encodeVector(result: VectorResult): string {
  const time = seconds(result.atNs);
  const samples = result.samples.map(
    ({ labels, value }) =>
      `{"metric":${encodeLabels(labels)},"value":[${time},"${formatSample(value)}"]}`,
  );
  return `[${samples.join(",")}]`;
}

/** Rows grouped into streams; streams sorted by label text, rows in the order of the result. */
function encodeStreams(result: LogResult, options: EncodeOptions): string {
  const keys = result.labels.map((row) =>
    formatLabels(options.categorize ? row.categories.stream : row.labels),
  );
  const extras = options.categorize ? result.labels.map(categories) : [];
  const streams = new Map<string, { labels: Labels; values: string[] }>();
  const decoder = new TextDecoder();
  const { bytes, offsets } = result.lines;
  for (let row = 0; row < result.rowCount; row++) {
    const set = result.labelSet[row] as number;
    const key = keys[set] as string;
    let stream = streams.get(key);
    if (stream === undefined) {
      const labels = result.labels[set] as RowLabels;
      stream = {
        labels: options.categorize ? labels.categories.stream : labels.labels,
        values: [],
      };
      streams.set(key, stream);
    }
    const line = text(decoder.decode(bytes.subarray(offsets[row], offsets[row + 1])));
    const extra = options.categorize ? `,${extras[set]}` : "";
    stream.values.push(`["${result.timestamps[row]}",${line}${extra}]`);
  }
  const sorted = [...streams.keys()].sort().map((key) => {
    const { labels, values } = streams.get(key) as { labels: Labels; values: string[] };
    return `{"stream":${encodeLabels(labels)},"values":[${values.join(",")}]}`;
  });
  return `[${sorted.join(",")}]`;
}

function categories({ categories: { structuredMetadata, parsed } }: RowLabels): string {
  const parts: string[] = [];
  if (structuredMetadata.names.length > 0) {
    parts.push(`"structuredMetadata":${encodeLabels(structuredMetadata)}`);
  }
  if (parsed.names.length > 0) parts.push(`"parsed":${encodeLabels(parsed)}`);
  return `{${parts.join(",")}}`;
}

export function encodeLabels(labels: Labels): string {
  return text(labelsToObject(labels));
}

const htmlUnsafe = /[<>&\u2028\u2029]/g;

/** JSON with the characters escaped that HTML would read, as the reference does. */
export function text(value: unknown): string {
  return JSON.stringify(value).replace(
    htmlUnsafe,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** ns as seconds with at most three decimals. */
function seconds(ns: bigint): string {
  return String(Number(ns / nsPerMs) / 1000);
}
