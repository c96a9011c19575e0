import { corrupt } from "../bytes/kernel-error.js";
import { paddedBytes } from "../bytes/padding.js";
import type { RawPush, RawPushLimits, TakeBytes } from "../push/raw-push.js";
import { readSnappyHeader, snappyCorruptText } from "../push/snappy-header.js";
import { refuseJsonSize } from "../twin/push/json.js";
import type { KernelMemory } from "./memory.js";
import { copyOutPush, scanIntoColumns } from "./push-columns.js";

/** The compiled form of twin/snappy.ts. */
export function decodeSnappy(memory: KernelMemory, body: Uint8Array, maxBytes: number): Uint8Array {
  const { decodedBytes, start } = readSnappyHeader(body, maxBytes);
  memory.open();
  try {
    const bytes = paddedBytes(decodedBytes);
    bytes.set(memory.bytes(decodeInto(memory, body, start, decodedBytes), decodedBytes));
    return bytes;
  } finally {
    memory.close();
  }
}

/** The compiled form of twin/protobuf-push.ts. */
export function decodeSnappyProtobufPush(
  memory: KernelMemory,
  body: Uint8Array,
  limits: RawPushLimits,
  take: TakeBytes = paddedBytes,
): RawPush {
  const { decodedBytes, start } = readSnappyHeader(body, limits.maxDecodedBytes);
  const { scanProtobufPush } = memory.open();
  try {
    const decoded = decodeInto(memory, body, start, decodedBytes);
    const control = scanIntoColumns(memory, decodedBytes, limits, (control) =>
      scanProtobufPush(decoded, decodedBytes, control),
    );
    return copyOutPush(memory, control, { address: decoded, length: decodedBytes }, take);
  } finally {
    memory.close();
  }
}

/** The compiled form of twin/json-push.ts. */
export function scanJsonPush(
  memory: KernelMemory,
  body: Uint8Array,
  limits: RawPushLimits,
  take: TakeBytes = paddedBytes,
): RawPush {
  refuseJsonSize(body, limits);
  const kernels = memory.open();
  try {
    let text = 0;
    // The scan changes the text, so that each try needs a fresh copy.
    const control = scanIntoColumns(memory, body.length, limits, (control) => {
      text = memory.copyIn(body);
      return kernels.scanJsonPush(text, body.length, control);
    });
    return copyOutPush(memory, control, { address: text, length: body.length }, take);
  } finally {
    memory.close();
  }
}

/** Decodes the elements behind the header; returns the address of the padded result. */
function decodeInto(
  memory: KernelMemory,
  body: Uint8Array,
  start: number,
  decodedBytes: number,
): number {
  const target = memory.take(decodedBytes);
  const mark = memory.mark;
  const source = memory.copyIn(start === 0 ? body : body.subarray(start));
  const { snappyDecode } = memory.exports();
  if (snappyDecode(source, body.length - start, target, decodedBytes) === 0) {
    throw corrupt(snappyCorruptText);
  }
  // The block is not needed any more: what comes next may lie where it was.
  memory.release(mark);
  return target;
}
