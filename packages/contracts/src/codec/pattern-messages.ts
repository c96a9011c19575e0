import {
  double,
  f64s,
  field,
  int64,
  type MessageCodec,
  mapped,
  message,
  rawBytes,
  repeated,
  text,
  u32s,
  uint,
} from "@skald/transport/protobuf";
import type { FoundPatterns, Pattern, PatternsRequest, SampledLines } from "../patterns.js";
import { areBelow, ascends, textList } from "./columns/columns.js";
import { matcher } from "./plan/stages.js";

export const patternsRequest: MessageCodec<PatternsRequest> = message<PatternsRequest>(
  {
    tenant: field(1, text),
    matchers: repeated(2, matcher),
    fromNs: field(3, int64),
    toNs: field(4, int64),
    stepSeconds: field(5, double),
  },
  ({ stepSeconds }) => (stepSeconds > 0 ? undefined : "a step takes no time"),
);

interface WirePattern extends Omit<Pattern, "samples"> {
  readonly times: Float64Array;
  readonly counts: Float64Array;
}

const pattern: MessageCodec<Pattern> = mapped(
  message<WirePattern>(
    {
      pattern: field(1, text),
      level: field(2, text),
      times: field(3, f64s),
      counts: field(4, f64s),
    },
    ({ times, counts }) =>
      times.length === counts.length ? undefined : "a sample is not complete",
  ),
  ({ samples, ...rest }): WirePattern => ({
    ...rest,
    times: Float64Array.from(samples, ([time]) => time),
    counts: Float64Array.from(samples, ([, count]) => count),
  }),
  ({ times, counts, ...rest }): Pattern => ({
    ...rest,
    samples: Array.from(times, (time, i) => [time, counts[i]!] as const),
  }),
);

export const foundPatterns: MessageCodec<FoundPatterns> = message<FoundPatterns>({
  patterns: repeated(1, pattern),
  lines: field(2, double),
});

export const sampledLines: MessageCodec<SampledLines> = message<SampledLines>(
  {
    tenant: field(1, text),
    weight: field(2, uint),
    streams: field(3, textList),
    levels: field(4, textList),
    streamOf: field(5, u32s),
    levelOf: field(6, u32s),
    seconds: field(7, f64s),
    ends: field(8, u32s),
    bytes: field(9, rawBytes),
  },
  ({ streams, levels, streamOf, levelOf, seconds, ends, bytes }) => {
    const { length } = ends;
    if ([streamOf, levelOf, seconds].some((column) => column.length !== length))
      return "columns are not of one length";
    if (!areBelow(streamOf, streams.length)) return "a line is of no stream";
    if (!areBelow(levelOf, levels.length)) return "a line has no level";
    if (!seconds.every(Number.isSafeInteger)) return "a time makes no sense";
    if (!ascends(ends) || (ends[length - 1] ?? 0) !== bytes.length)
      return "lines do not fit the bytes";
    return undefined;
  },
);
