import type { LogResult } from "@skald/logql";
import type { Labels } from "@skald/model";
import {
  double,
  f64s,
  field,
  i64s,
  int64,
  type MessageCodec,
  mapped,
  message,
  optional,
  repeated,
  text,
} from "@skald/transport/protobuf";
import type { Pattern, PatternsRequest } from "../patterns.js";
import type { TailRequest, TailRows } from "../tail.js";
import { labelSets } from "./labels.js";
import { logRows } from "./log-rows.js";
import { matcher, stage } from "./plan/stages.js";

export const tailRequest: MessageCodec<TailRequest> = message<TailRequest>({
  tenant: field(1, text),
  matchers: repeated(2, matcher),
  stages: repeated(3, stage),
});

interface WireTailRows {
  readonly rows?: LogResult;
  readonly droppedAt: BigInt64Array;
  readonly droppedLabels: readonly Labels[];
}

const logResult: MessageCodec<LogResult> = mapped(
  logRows,
  (rows) => rows,
  (rows): LogResult => ({ kind: "streams", ...rows }),
);

export const tailRows: MessageCodec<TailRows> = mapped(
  message<WireTailRows>(
    {
      rows: optional(1, logResult),
      droppedAt: field(2, i64s),
      droppedLabels: field(3, labelSets),
    },
    ({ droppedAt, droppedLabels }) =>
      droppedAt.length === droppedLabels.length ? undefined : "a dropped row is not complete",
  ),
  ({ dropped, ...rows }): WireTailRows => ({
    ...rows,
    droppedAt: BigInt64Array.from(dropped, ({ timestampNs }) => timestampNs),
    droppedLabels: dropped.map(({ labels }) => labels),
  }),
  ({ droppedAt, droppedLabels, ...rows }): TailRows => ({
    ...rows,
    dropped: droppedLabels.map((labels, i) => ({ timestampNs: droppedAt[i]!, labels })),
  }),
);

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
      share: field(3, double),
      times: field(4, f64s),
      counts: field(5, f64s),
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

export const patternsAnswer = message<{ readonly patterns: readonly Pattern[] }>({
  patterns: repeated(1, pattern),
});
