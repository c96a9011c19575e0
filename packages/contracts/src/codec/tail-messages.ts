import type { LogResult } from "@skald/logql";
import type { Labels } from "@skald/model";
import {
  field,
  i64s,
  type MessageCodec,
  mapped,
  message,
  optional,
  repeated,
  text,
} from "@skald/transport/protobuf";
import type { TailRequest, TailRows } from "../tail.js";
import { labelSets } from "./columns/labels.js";
import { logRows } from "./columns/log-rows.js";
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
