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
const columnCount = 12;
const firstPointer = 3;
const counts = 15;
const faultPosition = 18;
const shortColumn = 19;

/** Positions of the columns within the pointers of the control block, as assembly/columns.ts reads them. */
const column = {
  labelStart: 0,
  labelLength: 1,
  rowStart: 2,
  seconds: 3,
  nanos: 4,
  lineStart: 5,
  lineLength: 6,
  metaStart: 7,
  nameStart: 8,
  nameLength: 9,
  valueStart: 10,
  valueLength: 11,
} as const;

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

function layOut(memory: KernelMemory, { streams, rows, pairs }: Capacities): number {
  const control = memory.take(controlWords * 4);
  const lengths = [streams, streams, streams + 1, rows * 2, rows, rows, rows, rows + 1];
  const starts = [...lengths, pairs, pairs, pairs, pairs].map((words) => memory.take(words * 4));
  memory.words(control, controlWords).set([streams, rows, pairs, ...starts]);
  return control;
}

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

/** Copies the columns out of the memory, all into one buffer, and the body beside them. */
export function copyOutPush(
  memory: KernelMemory,
  control: number,
  body: { readonly address: number; readonly length: number },
  take: TakeBytes,
): RawPush {
  const words = memory.words(control, controlWords);
  const streams = words[counts]!;
  const rows = words[counts + 1]!;
  const pairs = words[counts + 2]!;
  const starts = words.subarray(firstPointer, firstPointer + columnCount);
  const { buffer } = take(rows * 24 + streams * 12 + pairs * 16 + 8);
  const seconds = new Float64Array(buffer, 0, rows);
  seconds.set(memory.doubles(starts[column.seconds]!, rows));
  let at = rows * 8;
  const copy = (index: number, count: number) => {
    const copied = new Uint32Array(buffer, at, count);
    copied.set(memory.words(starts[index]!, count));
    at += count * 4;
    return copied;
  };
  const bytes = take(body.length);
  bytes.set(memory.bytes(body.address, body.length));
  return {
    bytes,
    streamCount: streams,
    rowCount: rows,
    pairCount: pairs,
    streamLabelStart: copy(column.labelStart, streams),
    streamLabelLength: copy(column.labelLength, streams),
    streamRowStart: copy(column.rowStart, streams + 1),
    seconds,
    nanos: copy(column.nanos, rows),
    lineStart: copy(column.lineStart, rows),
    lineLength: copy(column.lineLength, rows),
    metaStart: copy(column.metaStart, rows + 1),
    metaNameStart: copy(column.nameStart, pairs),
    metaNameLength: copy(column.nameLength, pairs),
    metaValueStart: copy(column.valueStart, pairs),
    metaValueLength: copy(column.valueLength, pairs),
  };
}
