import { deserialize, serialize } from "node:v8";
import type { EncodedOutcome, ScanOutcome, ScanPlan, VolumeOutcome } from "../scan.js";

export function encodeOutcome(outcome: ScanOutcome | VolumeOutcome): EncodedOutcome {
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

/** The same for what was counted. */
export function decodeVolumes(bytes: EncodedOutcome): VolumeOutcome {
  return deserialize(bytes) as VolumeOutcome;
}
