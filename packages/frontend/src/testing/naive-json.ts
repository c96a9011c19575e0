import {
  formatSample,
  type LogResult,
  lineAt,
  type MatrixResult,
  type QueryResult,
  type RowLabels,
  type VectorResult,
} from "@skald/logql";
import {
  decodeText,
  formatLabels,
  formatRfc3339,
  type Labels,
  labelsToObject,
  nsPerMs,
  type QueryStats,
} from "@skald/model";
import type { EncodeOptions } from "../encode/json.js";
import { jsonText } from "../encode/pieces.js";
import { encodeStats } from "../encode/stats.js";

/** What `encodeQueryResult` gives, as one text. */
export function encodeNaively(
  result: QueryResult | LogResult,
  stats: QueryStats,
  options: EncodeOptions,
): string {
  const warnings = result.warnings.length === 0 ? "" : `"warnings":${jsonText(result.warnings)},`;
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
    const line = jsonText(decodeText(lineAt(result.lines, row)));
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

function encodeLabels(labels: Labels): string {
  return jsonText(labelsToObject(labels));
}

/** ns as seconds with at most three decimals. */
function seconds(ns: bigint): string {
  return String(Number(ns / nsPerMs) / 1000);
}

/** What `encodeLegacyStreams` gives, as one text. */
export function encodeLegacyNaively(result: LogResult, stats: QueryStats): string {
  const streams = new Map<string, { ts: string; line: string }[]>();
  const keys = result.labels.map((row: RowLabels) => formatLabels(row.labels));
  for (let row = 0; row < result.rowCount; row++) {
    const key = keys[result.labelSet[row] as number] as string;
    const entries = streams.get(key) ?? [];
    streams.set(key, entries);
    entries.push({
      ts: formatRfc3339(result.timestamps[row] as bigint),
      line: decodeText(lineAt(result.lines, row)),
    });
  }
  const list = [...streams.keys()]
    .sort()
    .map((labels) => ({ labels, entries: streams.get(labels) }));
  return `{"streams":${jsonText(list)},"stats":${encodeStats(stats)}}\n`;
}
