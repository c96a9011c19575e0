import { formatTime, type Zone } from "../shell/times.js";
import { alignRows, csvLine, goJson, logfmtLine } from "./cells.js";
import { drawChart, type Line, numberOf } from "./chart.js";
import { type LabelSet, labelText } from "./entries.js";

export type Point = readonly [seconds: number, value: string];

/** The answer of a metric query. */
export type MetricResult =
  | { readonly resultType: "vector"; readonly result: readonly VectorSample[] }
  | { readonly resultType: "matrix"; readonly result: readonly MatrixSeries[] }
  | { readonly resultType: "scalar"; readonly result: Point };

interface VectorSample {
  readonly metric: LabelSet;
  readonly value: Point;
}

interface MatrixSeries {
  readonly metric: LabelSet;
  readonly values: readonly Point[];
}

export interface MetricOutputOptions {
  readonly form: string;
  readonly zone: Zone;
  readonly columns: number;
  readonly isColoured: boolean;
}

/** A metric answer as it is written. `default`, `raw` and `jsonl` are JSON over many lines, as logcli writes it. */
export async function formatMetric(
  answer: MetricResult,
  options: MetricOutputOptions,
): Promise<string | Uint8Array> {
  const { form, zone } = options;
  const series = seriesOf(answer);
  switch (form) {
    case "chart":
      return drawChart(series, options);
    case "pretty":
      return answer.resultType === "matrix"
        ? drawChart(series, options)
        : valueTable(answer, series);
    case "table":
      return answer.resultType === "matrix" ? pointTable(series, zone) : valueTable(answer, series);
    case "parquet":
      return parquetOf(series);
    case "csv":
      return csvOf(series, zone);
    case "logfmt":
      return eachPoint(series, ({ metric }, ns, value) =>
        logfmtLine([["time", formatTime(ns, zone)], ...Object.entries(metric), ["value", value]]),
      );
    default:
      return goJson(answer.result, 2);
  }
}

function seriesOf(answer: MetricResult): Line[] {
  switch (answer.resultType) {
    case "scalar":
      return [{ metric: {}, values: [answer.result] }];
    case "vector":
      return answer.result.map(({ metric, value }) => ({ metric, values: [value] }));
    case "matrix":
      return [...answer.result];
  }
}

/** One row a series, the largest first. */
function valueTable(answer: MetricResult, series: readonly Line[]): string {
  if (answer.resultType === "scalar") return `${answer.result[1]}\n`;
  const names = namesOf(series);
  const rows = [...series]
    .sort((a, b) => Number(b.values[0]?.[1]) - Number(a.values[0]?.[1]))
    .map(({ metric, values }) => [
      ...names.map((name) => metric[name] ?? ""),
      values[0]?.[1] ?? "",
    ]);
  return alignRows([...names, "value"], rows);
}

/** One row a time, one column a series. */
function pointTable(series: readonly Line[], zone: Zone): string {
  const times = [...new Set(series.flatMap(({ values }) => values.map(([at]) => at)))];
  const byTime = series.map(({ values }) => new Map(values));
  const rows = times
    .sort((a, b) => a - b)
    .map((at) => [formatTime(nsOf(at), zone), ...byTime.map((values) => values.get(at) ?? "")]);
  return alignRows(["time", ...series.map(({ metric }) => labelText(metric))], rows);
}

function csvOf(series: readonly Line[], zone: Zone): string {
  const names = namesOf(series);
  const head = csvLine(["time", ...names, "value"]);
  return (
    head +
    eachPoint(series, ({ metric }, ns, value) =>
      csvLine([formatTime(ns, zone), ...names.map((name) => metric[name] ?? ""), value]),
    )
  );
}

/** A Parquet file with the columns of the server's: `timestamp` in ms, `labels`, `value`. */
async function parquetOf(series: readonly Line[]): Promise<Uint8Array> {
  const { parquetWriteBuffer } = await import("hyparquet-writer");
  const { sampleSchema } = await import("@skald/frontend/parquet");
  const rows = series.flatMap(({ metric, values }) =>
    values.map(([at, value]) => ({ at, metric, value: numberOf(value) })),
  );
  const columnData = [
    {
      name: "timestamp",
      data: BigInt64Array.from(rows, ({ at }) => BigInt(Math.round(at * 1000))),
    },
    { name: "labels", data: rows.map(({ metric }) => metric) },
    { name: "value", data: Float64Array.from(rows, ({ value }) => value) },
  ];
  return new Uint8Array(parquetWriteBuffer({ columnData, schema: sampleSchema() }));
}

function eachPoint(
  series: readonly Line[],
  format: (line: Line, ns: bigint, value: string) => string,
): string {
  return series
    .flatMap((line) => line.values.map(([at, value]) => format(line, nsOf(at), value)))
    .join("");
}

function namesOf(series: readonly Line[]): string[] {
  return [...new Set(series.flatMap(({ metric }) => Object.keys(metric)))].sort();
}

function nsOf(seconds: number): bigint {
  return BigInt(Math.round(seconds * 1000)) * 1_000_000n;
}
