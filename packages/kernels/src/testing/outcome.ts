import { KernelError } from "../shared/bytes.js";
import type { RawPush } from "../shared/raw-push.js";
import { toPlain } from "./push-oracle.js";

/** What a decode came to, as text for comparison: the push or the error. Any other throw goes on. */
export function outcomeOf(decode: () => RawPush): string {
  try {
    const push = decode();
    checkRanges(push);
    return JSON.stringify(toPlain(push));
  } catch (error) {
    if (error instanceof KernelError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** Throws where a column points outside of the bytes or ranges are not in order. */
function checkRanges(push: RawPush): void {
  inside(push.streamLabelStart, push.streamLabelLength, push.bytes.length);
  inside(push.lineStart, push.lineLength, push.bytes.length);
  inside(push.metaNameStart, push.metaNameLength, push.bytes.length);
  inside(push.metaValueStart, push.metaValueLength, push.bytes.length);
  ascending(push.streamRowStart, push.streamCount, push.rowCount);
  ascending(push.metaStart, push.rowCount, push.pairCount);
  if (push.seconds.length !== push.rowCount || push.nanos.length !== push.rowCount) {
    throw new Error("columns of unequal length");
  }
  if (push.nanos.some((nanos) => nanos > 999_999_999)) throw new Error("nanos out of range");
}

function inside(start: Uint32Array, length: Uint32Array, size: number): void {
  for (let i = 0; i < start.length; i++) {
    if (start[i]! + length[i]! > size) throw new Error("range outside of the bytes");
  }
}

function ascending(column: Uint32Array, count: number, end: number): void {
  if (column.length !== count + 1 || column[0] !== 0 || column[count] !== end) {
    throw new Error("ranges do not cover the rows");
  }
  for (let i = 0; i < count; i++)
    if (column[i]! > column[i + 1]!) throw new Error("range is negative");
}
