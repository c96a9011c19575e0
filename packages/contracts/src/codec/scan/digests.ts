import {
  f64s,
  field,
  int64,
  type MessageCodec,
  message,
  repeated,
  u32s,
  uint,
} from "@skald/transport/protobuf";
import type {
  DigestTask,
  MinuteDigests,
  PlacedHashes,
  RowHashTask,
  SkippedMinutes,
  StreamMinutes,
} from "../../agreement.js";
import type { SourceRef } from "../../source.js";
import { ascends } from "../columns/columns.js";
import { matcher } from "../plan/stages.js";
import { taskSource } from "./sources.js";

/** Why lists of minutes are no lists of minutes; undefined when they are. */
function refuseMinutes({ streams, counts, minutes }: StreamMinutes): string | undefined {
  const isWhole = counts.length === streams.length && sumOf(counts) === minutes.length;
  return isWhole ? undefined : "minutes are not those of their streams";
}

function sumOf(numbers: Uint32Array): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

const minuteFields = {
  streams: field(1, f64s),
  counts: field(2, u32s),
  minutes: field(3, u32s),
};

const streamMinutes: MessageCodec<StreamMinutes> = message<StreamMinutes>(
  minuteFields,
  refuseMinutes,
);

export const skippedMinutes: MessageCodec<SkippedMinutes> = message<SkippedMinutes>(
  { all: field(1, u32s), some: field(2, streamMinutes) },
  ({ all }) =>
    all.length % 2 === 0 && ascends(all) ? undefined : "stretches of minutes do not ascend",
);

export const minuteDigests: MessageCodec<MinuteDigests> = message<MinuteDigests>(
  { ...minuteFields, rows: field(4, u32s), sums: field(5, u32s) },
  (digests) => {
    const { minutes, rows, sums } = digests;
    const isWhole = rows.length === minutes.length && sums.length === 2 * minutes.length;
    return isWhole ? refuseMinutes(digests) : "digests are not those of their minutes";
  },
);

export const placedHashes: MessageCodec<PlacedHashes> = message<PlacedHashes>(
  {
    minute: field(1, u32s),
    source: field(2, u32s),
    block: field(3, u32s),
    row: field(4, u32s),
    hashes: field(5, u32s),
  },
  ({ minute, source, block, row, hashes }) => {
    const lengths = [source.length, block.length, row.length, hashes.length / 2];
    const isWhole = lengths.every((length) => length === minute.length);
    return isWhole ? undefined : "hashes are not those of their rows";
  },
);

export const digestTask: MessageCodec<DigestTask<SourceRef>> = message<DigestTask<SourceRef>>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, taskSource),
  matchers: repeated(4, matcher),
  minutesEach: field(5, uint),
});

export const rowHashTask: MessageCodec<RowHashTask<SourceRef>> = message<RowHashTask<SourceRef>>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, taskSource),
  wanted: field(4, streamMinutes),
});
