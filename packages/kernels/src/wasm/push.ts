import { corrupt, paddedBytes } from "../shared/bytes.js";
import type { Kernels } from "../shared/kernels.js";
import {
  pushFault,
  pushFaultError,
  type RawPush,
  type RawPushLimits,
  readSnappyHeader,
  refuseJsonSize,
  snappyCorruptText,
  type TakeBytes,
} from "../shared/raw-push.js";
import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/snappy.ts. */
export const decodeSnappy =
  (memory: KernelMemory): Kernels["decodeSnappy"] =>
  (body, maxBytes, take = paddedBytes) => {
    const { decodedBytes, start } = readSnappyHeader(body, maxBytes);
    memory.open();
    try {
      const bytes = take(decodedBytes);
      bytes.set(memory.bytes(decodeInto(memory, body, start, decodedBytes), decodedBytes));
      return bytes;
    } finally {
      memory.close();
    }
  };

/** The compiled form of twin/protobuf-push.ts. */
export const decodeSnappyProtobufPush =
  (memory: KernelMemory): Kernels["decodeSnappyProtobufPush"] =>
  (body, limits, take = paddedBytes) => {
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
  };

/** The compiled form of twin/json-push.ts. */
export const scanJsonPush =
  (memory: KernelMemory): Kernels["scanJsonPush"] =>
  (body, limits, take = paddedBytes) => {
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
  };

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
  // The block is not needed any more, so its memory is free for what comes next.
  memory.release(mark);
  return target;
}

/** How many values the columns have room for. */
interface Capacities {
  streams: number;
  rows: number;
  pairs: number;
}

const controlWords = 20;
const counts = 15;
const faultPosition = 18;
const shortColumn = 19;

/**
 * Runs a scan into columns of guessed length, and again with longer ones while they are too short, up to the
 * limits. `scan` gets the address of the control block, places the body, and returns a fault.
 */
function scanIntoColumns(
  memory: KernelMemory,
  bodyBytes: number,
  limits: RawPushLimits,
  scan: (control: number) => number,
): number {
  const capacities = {
    streams: Math.min(limits.maxStreams, 16 + Math.ceil(bodyBytes / 512)),
    rows: Math.min(limits.maxRows, 64 + Math.ceil(bodyBytes / 48)),
    pairs: Math.min(limits.maxPairs, 64 + Math.ceil(bodyBytes / 64)),
  };
  const mark = memory.mark;
  for (;;) {
    memory.release(mark);
    const control = layOut(memory, capacities);
    const fault = scan(control);
    if (fault === 0) return control;
    const words = memory.words(control, controlWords);
    if (fault !== pushFault.columnsFull) throw pushFaultError(fault, words[faultPosition]!, limits);
    lengthen(capacities, words[shortColumn]!, limits);
  }
}

/** The columns in the order in which assembly/push/columns.ts reads their addresses. */
function layOut(memory: KernelMemory, { streams, rows, pairs }: Capacities): number {
  const control = memory.take(controlWords * 4);
  layout[0] = streams;
  layout[1] = rows;
  layout[2] = pairs;
  layout[3] = memory.take(streams * 4);
  layout[4] = memory.take(streams * 4);
  layout[5] = memory.take((streams + 1) * 4);
  layout[6] = memory.take(rows * 8);
  for (let at = 7; at < 10; at++) layout[at] = memory.take(rows * 4);
  layout[10] = memory.take((rows + 1) * 4);
  for (let at = 11; at < 15; at++) layout[at] = memory.take(pairs * 4);
  memory.words(control, layout.length).set(layout);
  return control;
}

/** Three capacities and twelve addresses, before they are written to the memory. */
const layout = new Uint32Array(15);

function lengthen(capacities: Capacities, short: number, limits: RawPushLimits): void {
  const [kind, limit, fault] = (
    [
      ["streams", limits.maxStreams, pushFault.tooManyStreams],
      ["rows", limits.maxRows, pushFault.tooManyRows],
      ["pairs", limits.maxPairs, pushFault.tooManyPairs],
    ] as const
  )[short as 0 | 1 | 2];
  if (capacities[kind] >= limit) throw pushFaultError(fault, 0, limits);
  capacities[kind] = Math.min(limit, capacities[kind] * 4);
}

/** Copies a push out of the memory: all columns into one buffer, and the texts, packed, into another. */
function copyOutPush(
  memory: KernelMemory,
  control: number,
  body: { readonly address: number; readonly length: number },
  take: TakeBytes,
): RawPush {
  const words = memory.words(control + counts * 4, 3);
  const streams = words[0]!;
  const rows = words[1]!;
  const pairs = words[2]!;
  const columnBytes = rows * 24 + streams * 12 + pairs * 16 + 8;
  const packed = memory.take(columnBytes);
  const texts = memory.take(body.length);
  const textBytes = memory.exports().packPush(body.address, control, packed, texts);
  const columns = take(columnBytes);
  columns.set(memory.bytes(packed, columnBytes));
  const bytes = take(textBytes);
  bytes.set(memory.bytes(texts, textBytes));
  const { buffer } = columns;
  let at = columns.byteOffset;
  const next = (count: number) => {
    const column = new Uint32Array(buffer, at, count);
    at += count * 4;
    return column;
  };
  const seconds = new Float64Array(buffer, at, rows);
  at += rows * 8;
  // In the order of assembly/push/pack.ts.
  return {
    bytes,
    streamCount: streams,
    rowCount: rows,
    pairCount: pairs,
    streamLabelStart: next(streams),
    streamLabelLength: next(streams),
    streamRowStart: next(streams + 1),
    seconds,
    nanos: next(rows),
    lineStart: next(rows),
    lineLength: next(rows),
    metaStart: next(rows + 1),
    metaNameStart: next(pairs),
    metaNameLength: next(pairs),
    metaValueStart: next(pairs),
    metaValueLength: next(pairs),
  };
}
