import { deserialize, serialize } from "node:v8";
import type { ScanOutcome, ScanPlan } from "../scan.js";

/**
 * What a scan found, as it crosses threads and services: made where the data is, read where partial results are merged;
 * whoever passes it on in between does not look inside.
 */
export type EncodedOutcome = Uint8Array<ArrayBuffer>;

export function encodeOutcome(outcome: ScanOutcome): EncodedOutcome {
  const { buffer, byteOffset, byteLength } = serialize(outcome);
  // Memory of its own can be moved to another thread.
  if (byteOffset === 0 && byteLength === buffer.byteLength)
    return new Uint8Array(buffer as ArrayBuffer);
  return new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
}

/** Throws when the bytes are not what `encodeOutcome` made. Columns may be views of the bytes. */
export function decodeOutcome<Plan extends ScanPlan>(bytes: EncodedOutcome): ScanOutcome<Plan> {
  return deserialize(bytes) as ScanOutcome<Plan>;
}
