import type { MetricPlan, PlanNode } from "@skald/logql";
import { areBelow, ascends } from "./columns.js";
import type { MessageName, Raw } from "./types.js";

const notAlike = "columns are not of one length";

/**
 * What can be wrong with a message whose fields are each right: indexes without a target, lengths that do not fit, lists that
 * must ascend. Each gives the problem, or undefined. Code behind a message reads its columns without looking again.
 */
export const checks: { readonly [N in MessageName]?: (value: Raw<N>) => string | undefined } = {
  PatternsRequest: ({ stepSeconds }) => (stepSeconds > 0 ? undefined : "a step takes no time"),
  LinePattern: ({ times, counts }) =>
    times.length === counts.length ? undefined : "a sample is not complete",
  SampledLines: ({ streams, levels, streamOf, levelOf, seconds, ends, bytes }) => {
    if (!areAlike(ends, streamOf, levelOf, seconds)) return notAlike;
    if (!areBelow(streamOf, streams.length)) return "a line is of no stream";
    if (!areBelow(levelOf, levels.length)) return "a line has no level";
    if (!seconds.every(Number.isSafeInteger)) return "a time makes no sense";
    const isWhole = ascends(ends) && (ends[ends.length - 1] ?? 0) === bytes.length;
    return isWhole ? undefined : "lines do not fit the bytes";
  },
  Shard: ({ index, count }) => (index < count ? undefined : "a shard is none of its number"),
  HashPart: ({ index, count }) => (index < count ? undefined : "a part is none of its number"),
  SourcePart: ({ from, to }) =>
    from >= 0 && from <= to && to <= 1 ? undefined : "a part is none of a whole",
  MetricPlan: ({ root, leaves }) => problemOfPlan(root, leaves),
  RowMask: ({ blocks, rows }) => {
    if (blocks.length !== rows.length) return "a mask has not rows for each block";
    const isAscending = ascends(blocks, true) && rows.every((one) => ascends(one, true));
    return isAscending ? undefined : "a mask does not ascend";
  },
  DuplicateTask: ({ sources }) => (sources.length > 0 ? undefined : "nothing is compared"),
  MatchTask: ({ sources }) => (sources.length === 1 ? undefined : "filters are for one source"),
  StreamMinutes: problemOfMinutes,
  SkippedMinutes: ({ all }) =>
    all.length % 2 === 0 && ascends(all) ? undefined : "stretches of minutes do not ascend",
  MinuteDigests: (digests) => {
    const { minutes, rows, sums } = digests;
    const isWhole = rows.length === minutes.length && sums.length === 2 * minutes.length;
    return isWhole ? problemOfMinutes(digests) : "digests are not those of their minutes";
  },
  PlacedHashes: ({ minute, source, block, row, hashes }) =>
    areAlike(minute, source, block, row) && hashes.length === 2 * minute.length
      ? undefined
      : "hashes are not those of their rows",
  // Times are made of these, and no others can be.
  RowPlaces: ({ day, time }) =>
    day.every(Number.isSafeInteger) && time.every(Number.isSafeInteger)
      ? undefined
      : "a time makes no sense",
  LogPartial: ({ rowCount, places, labelSet, lines, labels }) => {
    const { day, time, stream, sequence, row } = places;
    if (labelSet.length !== rowCount || !areAlike(labelSet, day, time, stream, sequence, row))
      return notAlike;
    if (lines.offsets.length !== rowCount + 1) return "there is not a line for each row";
    return areBelow(labelSet, labels.length) ? undefined : "a row has no labels";
  },
  MetricPartial: ({ mode, labels, start, bucket: { length }, count, value, extra, stream }) => {
    if (start.length !== labels.length + 1 || !ascends(start)) return "series do not ascend";
    if (start[0] !== 0 || start[labels.length] !== length) return "entries are of no series";
    if (count.length !== (mode === "samples" ? 0 : length)) return notAlike;
    if (value.length !== (mode === "count" ? 0 : length)) return notAlike;
    if (stream.length !== (mode === "first" || mode === "last" ? length : 0)) return notAlike;
    return extra.length === 0 || extra.length === length ? undefined : notAlike;
  },
  VolumeOutcome: (found) =>
    found.streams.length % 2 === 0 ? problemOfCells(found) : "a stream does not have two numbers",
  VolumeAnswer: problemOfCells,
  StreamColumns: (streams) => {
    const { hashes, starts, pairs, names, pairNames, values, valueHashes } = streams;
    const { length } = pairNames;
    if (starts[0] !== 0 || !ascends(starts)) return "streams do not ascend";
    if (starts[starts.length - 1] !== pairs.length) return "pairs are of no stream";
    if (hashes.length !== 2 * (starts.length - 1)) return "there is not a hash for each stream";
    if (values.offsets.length !== length + 1 || valueHashes.length !== 2 * length)
      return "there is not a value for each pair";
    if (!areBelow(pairs, length) || !areBelow(pairNames, names.length))
      return "a label has no text";
    return undefined;
  },
  Streams: ({ rowCount, timestamps, labelSet, lines, labels }) => {
    if (timestamps.length !== rowCount || labelSet.length !== rowCount) return notAlike;
    if (lines.offsets.length !== rowCount + 1) return "there is not a line for each row";
    return areBelow(labelSet, labels.length) ? undefined : "a row has no labels";
  },
  Vector: ({ labels, values }) =>
    labels.length === values.length ? undefined : "a sample is not complete",
  Matrix: ({ points, labels, at, values }) =>
    labels.every((_, i) => at[i]?.length === values[i]?.length && areBelow(at[i]!, points.count))
      ? undefined
      : "a series is not complete",
  TailRows: ({ droppedAt, droppedLabels }) =>
    droppedAt.length === droppedLabels.length ? undefined : "a dropped row is not complete",
  NamesAndValues: ({ names, values }) =>
    names.length === values.length ? undefined : "labels are not complete",
  QueryRequest: problemOfTenants,
  VolumeRequest: problemOfTenants,
  ExplainRequest: problemOfTenants,
  ChangesRequest: problemOfTenants,
};

function areAlike({ length }: Uint32Array, ...others: readonly (Uint32Array | Float64Array)[]) {
  return others.every((one) => one.length === length);
}

function problemOfTenants({ tenants }: { readonly tenants: readonly string[] }) {
  return tenants.length === 0 ? "it names no tenant" : undefined;
}

function problemOfMinutes({ streams, counts, minutes }: Raw<"StreamMinutes">): string | undefined {
  const sum = counts.reduce((total, count) => total + count, 0);
  const isWhole = counts.length === streams.length && sum === minutes.length;
  return isWhole ? undefined : "minutes are not those of their streams";
}

type Cells = Pick<Raw<"VolumeOutcome">, "groups" | "group" | "bucket" | "rows" | "bytes">;

function problemOfCells({ groups, group, bucket, rows, bytes }: Cells): string | undefined {
  if (!areAlike(group, bucket, rows, bytes)) return notAlike;
  return areBelow(group, groups.length) ? undefined : "a cell is of no group";
}

/** A node that names a leaf that is not there would be found in the middle of the query. */
function problemOfPlan(root: PlanNode, leaves: MetricPlan["leaves"]): string | undefined {
  const open: PlanNode[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.kind === "leaf") {
      if (leaves[node.leaf]?.functions[node.function] === undefined) return "a plan lacks a leaf";
    } else if (node.kind === "binary") open.push(node.left, node.right);
    else if ("inner" in node) open.push(node.inner);
  }
  return undefined;
}
