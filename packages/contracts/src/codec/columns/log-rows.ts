import type { LogResult } from "@skald/logql";
import {
  decodeMessage,
  encodeMessage,
  field,
  i64s,
  type MessageCodec,
  message,
  repeated,
  text,
  u32s,
  uint,
} from "@skald/transport/protobuf";
import { areBelow, bytesColumn } from "./columns.js";
import { rowLabels } from "./labels.js";

export const logRows: MessageCodec<Omit<LogResult, "kind">> = message<Omit<LogResult, "kind">>(
  {
    rowCount: field(1, uint),
    timestamps: field(2, i64s),
    labelSet: field(3, u32s),
    lines: field(4, bytesColumn),
    labels: field(5, rowLabels),
    warnings: repeated(6, text),
  },
  ({ rowCount, timestamps, labelSet, lines, labels }) => {
    if (timestamps.length !== rowCount || labelSet.length !== rowCount)
      return "columns are not of one length";
    if (lines.offsets.length !== rowCount + 1) return "there is not a line for each row";
    return areBelow(labelSet, labels.length) ? undefined : "a row has no labels";
  },
);

/** The rows of a log query as bytes, for threads and services. */
export function encodeLogRows(rows: LogResult): Uint8Array {
  return encodeMessage(logRows, rows);
}

/** Throws invalid_argument when the bytes are not what `encodeLogRows` made. */
export function decodeLogRows(bytes: Uint8Array): LogResult {
  return { kind: "streams", ...decodeMessage(logRows, bytes) };
}
