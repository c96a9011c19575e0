import type { IncomingHttpHeaders } from "node:http";
import { pairValues, streamCountOf, type TenantStreams, type VolumeAnswer } from "@skald/contracts";
import {
  formatSample,
  groupLogRows,
  type LogResult,
  type MatrixResult,
  type QueryResult,
  type RowLabels,
  type VectorResult,
} from "@skald/logql";
import {
  formatLabels,
  formatRfc3339,
  type Labels,
  labelsToObject,
  nsPerMs,
  type QueryStats,
} from "@skald/model";
import type { DetectedField } from "../explore/detected-fields.js";
import { bucketTime, type VolumeParams, type VolumeSeries } from "../explore/volume.js";
import { jsonText, type Pieces, PieceWriter, quickText } from "./pieces.js";
import { encodeStats } from "./stats.js";

export interface EncodeOptions {
  /** Keep index labels, structured metadata and parsed labels apart (`categorize-labels`). */
  readonly categorize: boolean;
  /** Time since the encoding began, for the statistics; they say 0 if not given. */
  readonly encodeSeconds?: () => number;
}

export const encodingFlagHeaders = [
  "x-loki-response-encoding-flags",
  "x-service-response-encoding-flags",
];

/** Whether labels shall be told apart by their origins. */
export function wantsCategories({ headers }: { readonly headers: IncomingHttpHeaders }): boolean {
  const flags = encodingFlagHeaders.map((name) => headers[name] ?? "").join();
  return flags.split(",").some((flag) => flag.trim() === "categorize-labels");
}

/** The envelope of query and query_range as JSON, ended by a line feed. */
export function* encodeQueryResult(
  result: QueryResult | LogResult,
  stats: QueryStats,
  options: EncodeOptions,
): Pieces {
  const out = new PieceWriter();
  const warnings = result.warnings.length === 0 ? "" : `"warnings":${jsonText(result.warnings)},`;
  const flags =
    options.categorize && result.kind === "streams" ? '"encodingFlags":["categorize-labels"],' : "";
  out.text(
    `{"status":"success",${warnings}"data":{"resultType":"${result.kind}",${flags}"result":[`,
  );
  yield* encodeResult(result, options, out);
  out.text(`],"stats":${encodeStats(stats, options.encodeSeconds?.())}}}\n`);
  yield* out.rest();
}

/** Characters of lists that are encoded in one call. */
const textAtOnce = 16 * 1024;

/** The envelope of a list as JSON, ended by a line feed. */
export function* encodeList(data: Iterable<string>): Pieces {
  const out = new PieceWriter();
  out.text('{"status":"success","data":[');
  let comma = "";
  let text = "";
  for (const item of data) {
    text += comma + quickText(item);
    comma = ",";
    if (text.length < textAtOnce) continue;
    out.text(text);
    text = "";
    yield* out.full();
  }
  out.text(`${text}]}\n`);
  yield* out.rest();
}

/** The envelope of a list of label sets as JSON, ended by a line feed; with the tenant as label `tenantLabel` if given. */
export function* encodeSeries(found: Iterable<TenantStreams>, tenantLabel?: string): Pieces {
  const out = new PieceWriter();
  out.text('{"status":"success","data":[');
  let comma = "";
  let text = "";
  for (const item of labelSets(found, tenantLabel)) {
    text += `${comma}{${item}}`;
    comma = ",";
    if (text.length < textAtOnce) continue;
    out.text(text);
    text = "";
    yield* out.full();
  }
  out.text(`${text}]}\n`);
  yield* out.rest();
}

/** The inner text of the JSON object of each label set; a label of that name that a stream has itself is `original_...`. */
function* labelSets(found: Iterable<TenantStreams>, tenantLabel?: string): Generator<string> {
  for (const { tenant, streams } of found) {
    const first = tenantLabel === undefined ? "" : `${jsonText(tenantLabel)}:${jsonText(tenant)}`;
    for (const list of streams) {
      const { starts, pairs, names, pairNames } = list;
      const nameTexts = names.map(
        (name) => `${jsonText(name === tenantLabel ? `original_${name}` : name)}:`,
      );
      const values = pairValues(list);
      const texts = values.map(
        (value, pair) => `${nameTexts[pairNames[pair] as number]}${quickText(value)}`,
      );
      for (let stream = 0; stream < streamCountOf(list); stream++) {
        let text = first;
        for (let at = starts[stream] as number; at < (starts[stream + 1] as number); at++) {
          text += `${text === "" ? "" : ","}${texts[pairs[at] as number]}`;
        }
        yield text;
      }
    }
  }
}

/** The items between the brackets of a result. */
function encodeResult(
  result: QueryResult | LogResult,
  options: EncodeOptions,
  out: PieceWriter,
): Pieces {
  switch (result.kind) {
    case "streams":
      return encodeStreams(result, options, out);
    case "matrix":
      return encodeMatrix(result, out);
    case "vector":
      return encodeVector(result, out);
    case "scalar":
      // The reference writes the time of a scalar in whole milliseconds.
      out.text(`${result.atNs / nsPerMs},"${formatSample(result.value)}"`);
      return out.full();
  }
}

function* encodeMatrix({ points, series }: MatrixResult, out: PieceWriter): Pieces {
  let comma = "";
  for (const { labels, at, values } of series) {
    out.text(`${comma}{"metric":${encodeLabels(labels)},"values":[`);
    comma = ",";
    for (let i = 0; i < at.length; i++) {
      const time = points.startNs + BigInt(at[i] as number) * points.stepNs;
      const sample = `[${seconds(time)},"${formatSample(values[i] as number)}"]`;
      out.text(i === 0 ? sample : `,${sample}`);
      yield* out.full();
    }
    out.text("]}");
  }
}

function* encodeVector(result: VectorResult, out: PieceWriter): Pieces {
  const time = seconds(result.atNs);
  let comma = "";
  for (const { labels, value } of result.samples) {
    const sample = `"value":[${time},"${formatSample(value)}"]`;
    out.text(`${comma}{"metric":${encodeLabels(labels)},${sample}}`);
    comma = ",";
    yield* out.full();
  }
}

/** Rows grouped into streams; streams sorted by label text, rows in the order of the result. */
function* encodeStreams(
  result: LogResult,
  { categorize }: EncodeOptions,
  out: PieceWriter,
): Pieces {
  const extras: string[] = [];
  let comma = "";
  for (const { labels, rows } of groupLogRows(result, categorize ? "stream" : "all")) {
    out.text(`${comma}{"stream":${encodeLabels(labels)},"values":[`);
    comma = "";
    for (const row of rows) {
      out.text(`${comma}["${result.timestamps[row]}",`);
      comma = ",";
      out.line(result.lines, row);
      if (categorize) {
        const set = result.labelSet[row] as number;
        extras[set] ??= `,${encodeCategories(result.labels[set] as RowLabels)}`;
        out.text(extras[set]);
      }
      out.text("]");
      yield* out.full();
    }
    out.text("]}");
    comma = ",";
  }
}

/** Metadata and parsed labels of a row, apart: an object in JSON. */
export function encodeCategories({
  categories: { structuredMetadata, parsed },
}: RowLabels): string {
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

/** The body of the legacy query endpoint: streams with label texts, entries with RFC 3339 times. */
export function* encodeLegacyStreams(result: LogResult, stats: QueryStats): Pieces {
  const out = new PieceWriter();
  let comma = "";
  out.text('{"streams":[');
  for (const { labels, rows } of groupLogRows(result, "all")) {
    out.text(`${comma}{"labels":`);
    out.string(formatLabels(labels));
    out.text(',"entries":[');
    comma = "";
    for (const row of rows) {
      out.text(`${comma}{"ts":"${formatRfc3339(result.timestamps[row] as bigint)}","line":`);
      comma = ",";
      out.line(result.lines, row);
      out.text("}");
      yield* out.full();
    }
    out.text("]}");
    comma = ",";
  }
  out.text(`],"stats":${encodeStats(stats)}}\n`);
  yield* out.rest();
}

/** Volumes as JSON: a vector of totals, or a matrix of buckets; without an answer an empty one. */
export function* encodeVolume(
  kind: "instant" | "range",
  series: readonly VolumeSeries[],
  params: VolumeParams,
  answer: VolumeAnswer | undefined,
): Pieces {
  const out = new PieceWriter();
  const { warnings = [] } = answer ?? {};
  const warned = warnings.length === 0 ? "" : `"warnings":${jsonText(warnings)},`;
  const type = kind === "range" ? "matrix" : "vector";
  out.text(`{"status":"success",${warned}"data":{"resultType":"${type}","result":[`);
  let comma = "";
  for (const { labels, total, buckets, bytes } of series) {
    out.text(`${comma}{"metric":${jsonText(labelsToObject(labels))},`);
    comma = ",";
    if (kind === "instant") out.text(`"value":${sample(params.endNs, total)}}`);
    else {
      const samples = buckets.map((bucket, i) => sample(bucketTime(params, bucket), bytes[i]!));
      out.text(`"values":[${samples.join(",")}]}`);
    }
    yield* out.full();
  }
  out.text(`],"stats":${answer === undefined ? "{}" : encodeStats(answer.stats)}}}\n`);
  yield* out.rest();
}

/** Fields as JSON; `{}` when there are none. */
export function encodeFields(fields: readonly DetectedField[], limit: number): string {
  if (fields.length === 0) return "{}\n";
  const items = fields.map(({ label, type, values, parsers, jsonPath }) => ({
    label,
    type,
    cardinality: values.size,
    parsers: parsers.length === 0 ? null : parsers,
    ...(jsonPath === undefined ? {} : { jsonPath }),
  }));
  return `${jsonText({ fields: items, limit })}\n`;
}

function sample(ns: bigint, value: number): string {
  return `[${Number(ns / nsPerMs) / 1000},"${value}"]`;
}
