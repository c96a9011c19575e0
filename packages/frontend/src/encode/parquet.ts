import {
  type LogResult,
  lineAt,
  type MatrixResult,
  type QueryResult,
  type VectorResult,
} from "@skald/logql";
import { decodeText, invalidArgument, labelsToObject, nsPerMs } from "@skald/model";
import { parquetWriteBuffer, type SchemaElement } from "hyparquet-writer";

export const parquetType = "application/vnd.apache.parquet";

/**
 * A query result as a Parquet file, one row per entry or sample in the order of the result: `timestamp`, `labels` (a map),
 * and `line` or `value`. Structured metadata is among the labels.
 */
export function encodeParquet(result: QueryResult | LogResult): Uint8Array {
  switch (result.kind) {
    case "streams":
      return encodeRows(result);
    case "matrix":
      return encodeSamples(...matrixColumns(result));
    case "vector":
      return encodeSamples(...vectorColumns(result));
    case "scalar":
      throw invalidArgument("request does not support Parquet responses");
  }
}

type LabelObject = Record<string, string>;

function encodeRows(result: LogResult): Uint8Array {
  const objects = result.labels.map(({ labels }) => labelsToObject(labels));
  const labels = Array.from(result.labelSet, (set) => objects[set] as LabelObject);
  const lines = Array.from({ length: result.rowCount }, (_, row) =>
    decodeText(lineAt(result.lines, row)),
  );
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: "timestamp", data: result.timestamps, encoding: "DELTA_BINARY_PACKED" },
        { name: "labels", data: labels },
        { name: "line", data: lines },
      ],
      schema: lineSchema(),
    }),
  );
}

function encodeSamples(
  times: BigInt64Array,
  labels: LabelObject[],
  values: Float64Array,
): Uint8Array {
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: "timestamp", data: times },
        { name: "labels", data: labels },
        { name: "value", data: values },
      ],
      schema: sampleSchema(),
    }),
  );
}

type SampleColumns = [BigInt64Array, LabelObject[], Float64Array];

function matrixColumns({ points, series }: MatrixResult): SampleColumns {
  const times: bigint[] = [];
  const labels: LabelObject[] = [];
  const values: number[] = [];
  for (const { labels: set, at, values: samples } of series) {
    const object = labelsToObject(set);
    at.forEach((point, i) => {
      times.push((points.startNs + BigInt(point) * points.stepNs) / nsPerMs);
      labels.push(object);
      values.push(samples[i] as number);
    });
  }
  return [BigInt64Array.from(times), labels, Float64Array.from(values)];
}

function vectorColumns({ atNs, samples }: VectorResult): SampleColumns {
  return [
    new BigInt64Array(samples.length).fill(atNs / nsPerMs),
    samples.map(({ labels }) => labelsToObject(labels)),
    Float64Array.from(samples, ({ value }) => value),
  ];
}

function timestamp(unit: "NANOS" | "MILLIS"): SchemaElement {
  return {
    name: "timestamp",
    type: "INT64",
    repetition_type: "REQUIRED",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit },
  };
}

function text(name: string): SchemaElement {
  return { name, type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" };
}

/** The columns of lines: `timestamp` in ns, `labels`, `line`. */
export function lineSchema(): SchemaElement[] {
  return schemaOf(timestamp("NANOS"), text("line"));
}

/** The columns of samples: `timestamp` in ms, `labels`, `value`. */
export function sampleSchema(): SchemaElement[] {
  const value = { name: "value", type: "DOUBLE", repetition_type: "REQUIRED" } as const;
  return schemaOf(timestamp("MILLIS"), value);
}

/** Time, the labels as a map from text to text, and the last column. */
function schemaOf(time: SchemaElement, last: SchemaElement): SchemaElement[] {
  return [
    { name: "root", num_children: 3 },
    time,
    {
      name: "labels",
      repetition_type: "REQUIRED",
      num_children: 1,
      converted_type: "MAP",
      logical_type: { type: "MAP" },
    },
    { name: "key_value", repetition_type: "REPEATED", num_children: 2 },
    text("key"),
    text("value"),
    last,
  ];
}
