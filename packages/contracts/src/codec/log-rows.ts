import { deserialize, serialize } from "node:v8";
import type { LogResult } from "@skald/logql";
import { decodeRowLabels, encodeRowLabels } from "./row-labels.js";

/** The rows of a log query as bytes, for threads and services. */
export function encodeLogRows(rows: LogResult): Uint8Array {
  return serialize({ ...rows, labels: encodeRowLabels(rows.labels) });
}

/** Throws when the bytes are not what `encodeLogRows` made. */
export function decodeLogRows(bytes: Uint8Array): LogResult {
  const sent = deserialize(bytes);
  return { ...sent, labels: decodeRowLabels(sent.labels) } as LogResult;
}
