import type { VolumeAnswer } from "@skald/contracts";
import { labelsToObject, nsPerMs } from "@skald/model";
import type { DetectedField } from "../explore/detected-fields.js";
import { bucketTime, type VolumeParams, type VolumeSeries } from "../explore/volume.js";
import { jsonText, type Pieces, PieceWriter } from "./pieces.js";
import { encodeStats } from "./stats.js";

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
