import { pushFault, pushFaultError } from "../push/fault.js";
import type { RawPush, RawPushLimits, TakeBytes } from "../push/raw-push.js";
import type { KernelMemory } from "./memory.js";

/** Rows that a column has room for. */
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
 * limits. `scan` gets the address of the control block and returns a fault; it puts the body where it wants it.
 */
export function scanIntoColumns(
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
export function copyOutPush(
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
