import type { LogPartial, MetricPartial, RowPlaces } from "@skald/logql";
import type { ReadStats } from "@skald/model";
import {
  bool,
  decodeMessage,
  double,
  encodeMessage,
  f64s,
  field,
  type Member,
  type MessageCodec,
  message,
  oneOf,
  u32s,
  uint,
  union,
} from "@skald/transport/protobuf";
import type { EncodedOutcome, ScanOutcome, ScanPlan } from "../../scan.js";
import { areBelow, ascends, bytesColumn } from "./columns.js";
import { labelSets, rowLabels } from "./labels.js";

export const readStats: MessageCodec<ReadStats> = message<ReadStats>({
  sources: field(1, double),
  sourcesScanned: field(2, double),
  batches: field(3, double),
  linesSent: field(4, double),
  headBytes: field(5, double),
  headLines: field(6, double),
  decompressedBytes: field(7, double),
  decompressedLines: field(8, double),
  compressedBytes: field(9, double),
  filteredBlocks: field(10, double),
  refusedBlocks: field(11, double),
  duplicates: field(12, double),
  postFilterLines: field(13, double),
  downloadNs: field(14, double),
  fetchedRanges: field(15, double),
  fetchedPages: field(16, double),
  fetchedBytes: field(17, double),
  cachedPages: field(18, double),
  cachedBytes: field(19, double),
});

const rowPlaces: MessageCodec<RowPlaces> = message<RowPlaces>(
  {
    day: field(1, f64s),
    time: field(2, f64s),
    stream: field(3, f64s),
    sequence: field(4, f64s),
    row: field(5, f64s),
  },
  // Times are made of these, and no others can be.
  ({ day, time }) =>
    day.every(Number.isSafeInteger) && time.every(Number.isSafeInteger)
      ? undefined
      : "a time makes no sense",
);

const logPartial: MessageCodec<LogPartial> = message<LogPartial>(
  {
    rowCount: field(1, uint),
    places: field(2, rowPlaces),
    labelSet: field(3, u32s),
    lines: field(4, bytesColumn),
    labels: field(5, rowLabels),
    truncated: field(6, bool),
  },
  ({ rowCount, places, labelSet, lines, labels }) => {
    const { day, time, stream, sequence, row } = places;
    const columns = [day, time, stream, sequence, row, labelSet];
    if (columns.some(({ length }) => length !== rowCount)) return "columns are not of one length";
    if (lines.offsets.length !== rowCount + 1) return "there is not a line for each row";
    return areBelow(labelSet, labels.length) ? undefined : "a row has no labels";
  },
);

const metricPartial: MessageCodec<MetricPartial> = message<MetricPartial>(
  {
    mode: field(
      1,
      oneOf(["count", "bytes", "sum", "min", "max", "moments", "first", "last", "samples"]),
    ),
    labels: field(2, labelSets),
    start: field(3, u32s),
    bucket: field(4, u32s),
    count: field(5, f64s),
    value: field(6, f64s),
    extra: field(7, f64s),
    stream: field(8, f64s),
  },
  ({ mode, labels, start, bucket: { length }, count, value, extra, stream }) => {
    if (start.length !== labels.length + 1 || !ascends(start)) return "series do not ascend";
    if (start[0] !== 0 || start[labels.length] !== length) return "entries are of no series";
    const counted = mode === "samples" ? 0 : length;
    const valued = mode === "count" ? 0 : length;
    if (count.length !== counted || value.length !== valued) return "columns are not of one length";
    const keyed = mode === "first" || mode === "last" ? length : 0;
    if (stream.length !== keyed) return "columns are not of one length";
    return extra.length === 0 || extra.length === length
      ? undefined
      : "columns are not of one length";
  },
);

interface WireOutcome {
  readonly found:
    | { readonly kind: "log"; readonly partial: LogPartial }
    | { readonly kind: "metric"; readonly partial: MetricPartial };
  readonly stats: ReadStats;
  readonly streams: number;
}
type Found = WireOutcome["found"];

const outcome: MessageCodec<WireOutcome> = message<WireOutcome>({
  stats: field(1, readStats),
  streams: field(2, double),
  found: field(
    3,
    union<Found>({
      log: [1, message<Member<Found, "log">>({ partial: field(1, logPartial) })],
      metric: [2, message<Member<Found, "metric">>({ partial: field(1, metricPartial) })],
    }),
  ),
});

/** What the labels of a series, and of a row by origin, take about; and the rest of an outcome. */
const labelSetBytes = 64;
const restBytes = 1024;

/** An outcome in memory of its own, which can be moved to another thread. */
export function encodeOutcome({ partial, stats, streams }: ScanOutcome): EncodedOutcome {
  const found: Found = "mode" in partial ? { kind: "metric", partial } : { kind: "log", partial };
  return encodeMessage(outcome, { stats, streams, found }, sizeOfPartial(partial));
}

/** Throws invalid_argument when the bytes are not what `encodeOutcome` made. */
export function decodeOutcome<Plan extends ScanPlan>(bytes: EncodedOutcome): ScanOutcome<Plan> {
  const { found, stats, streams } = decodeMessage(outcome, bytes);
  return { partial: found.partial as ScanOutcome<Plan>["partial"], stats, streams };
}

function sizeOfPartial(partial: LogPartial | MetricPartial): number {
  const sets = partial.labels.length * labelSetBytes;
  if ("mode" in partial) {
    const { start, bucket, count, value, extra, stream } = partial;
    const columns = [start, bucket, count, value, extra, stream];
    return columns.reduce((total, { byteLength }) => total + byteLength, sets + restBytes);
  }
  const { rowCount, lines } = partial;
  const bytesPerRow = 48;
  return rowCount * bytesPerRow + (lines.offsets[rowCount] ?? 0) + 4 * sets + restBytes;
}
