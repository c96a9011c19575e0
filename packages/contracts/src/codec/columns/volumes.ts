import {
  bool,
  decodeMessage,
  double,
  encodeMessage,
  f64s,
  field,
  int64,
  type MessageCodec,
  message,
  oneOf,
  optional,
  repeated,
  u32s,
  uint,
} from "@skald/transport/protobuf";
import type { EncodedOutcome, VolumeOutcome } from "../../scan.js";
import type { VolumeBuckets, VolumeCells, VolumeGrouping, VolumePlan } from "../../volume.js";
import { matcher } from "../plan/stages.js";
import { areBelow, textList } from "./columns.js";
import { labelSets } from "./labels.js";
import { readStats } from "./outcome.js";

const grouping: MessageCodec<VolumeGrouping> = message<VolumeGrouping>({
  kind: field(1, oneOf(["series", "names"])),
  names: optional(2, textList),
});

const buckets: MessageCodec<VolumeBuckets> = message<VolumeBuckets>({
  firstNs: field(1, int64),
  stepNs: field(2, int64),
  count: field(3, uint),
});

/** The fields of what is asked for. */
export const volumePlanFields = {
  fromNs: field(1, int64),
  toNs: field(2, int64),
  matchers: repeated(3, matcher),
  groupBy: field(4, grouping),
  buckets: field(5, buckets),
  maxGroups: field(6, double),
  countsStreams: field(7, bool),
};

export const volumePlan: MessageCodec<VolumePlan> = message<VolumePlan>(volumePlanFields);

/** The fields of what was counted, and what is wrong with their values. */
export const volumeCellFields = {
  groups: field(1, labelSets),
  group: field(2, u32s),
  bucket: field(3, u32s),
  rows: field(4, f64s),
  bytes: field(5, f64s),
  blocks: field(6, double),
};

export function problemOfCells(cells: VolumeCells): string | undefined {
  const { groups, group, bucket, rows, bytes } = cells;
  if ([bucket, rows, bytes].some(({ length }) => length !== group.length))
    return "columns are not of one length";
  return areBelow(group, groups.length) ? undefined : "a cell is of no group";
}

const volumeOutcome: MessageCodec<VolumeOutcome> = message<VolumeOutcome>(
  { ...volumeCellFields, streams: field(7, u32s), stats: field(8, readStats) },
  (found) =>
    found.streams.length % 2 === 0 ? problemOfCells(found) : "a stream does not have two numbers",
);

/** What was counted, in memory of its own, which can be moved to another thread. */
export function encodeVolumes(found: VolumeOutcome): EncodedOutcome {
  const { groups, group, bucket, rows, bytes, streams } = found;
  const columns = [group, bucket, rows, bytes, streams];
  const size = columns.reduce((total, { byteLength }) => total + byteLength, 1024);
  return encodeMessage(volumeOutcome, found, size + groups.length * 64);
}

/** Throws invalid_argument when the bytes are not what `encodeVolumes` made. */
export function decodeVolumes(bytes: EncodedOutcome): VolumeOutcome {
  return decodeMessage(volumeOutcome, bytes);
}
