import type { Batch, BatchStream } from "@skald/model";
import type { Head } from "../head/head.js";
import { noDay, type StreamTable } from "../streams/stream-table.js";
import { BatchDuplicates } from "./batch-duplicates.js";
import { HeadDuplicates } from "./head-duplicates.js";

/** Accepted rows of one stream that lie in one UTC day. */
export interface AdmittedRange {
  readonly day: number;
  readonly rowFrom: number;
  readonly rowTo: number;
}

export interface Admission {
  readonly ranges: readonly AdmittedRange[];
  /** Rows that are not stored, ascending: duplicates and refused ones. */
  readonly dropped: readonly number[];
  /** The refused ones: too far behind the newest row of the stream. */
  readonly behind: readonly BehindRow[];
}

export interface BehindRow {
  readonly row: number;
  /** The oldest time that would have been accepted. */
  readonly oldestDay: number;
  readonly oldestTime: number;
}

export interface AdmissionContext {
  readonly streams: StreamTable;
  /** How far a row may be behind the newest one of its stream, ns. */
  readonly windowNs: number;
  /** The head that takes rows of the day now, if there is one. */
  readonly headOf: (day: number) => Head | undefined;
}

/**
 * Admits all rows of a stream where they ascend strictly from its newest time on and are of one day, as agents send them, and
 * moves the newest time on; returns the day, or undefined where they have to be looked at one by one, by `admitRows`.
 */
export function admitInOrder(
  streams: StreamTable,
  batch: Batch,
  { rowStart, rowEnd }: BatchStream,
  number: number,
): number | undefined {
  const { seconds, nanos } = batch;
  const day = Math.floor(seconds[rowStart]! / 86_400);
  const time = (seconds[rowStart]! - day * 86_400) * 1e9 + nanos[rowStart]!;
  if (compare(day, time, streams.newestDay[number]!, streams.newestTime[number]!) <= 0) {
    return undefined;
  }
  const lastSeconds = seconds[rowEnd - 1]!;
  if (lastSeconds >= (day + 1) * 86_400 || !ascends(batch, rowStart, rowEnd)) return undefined;
  streams.newestDay[number] = day;
  streams.newestTime[number] = (lastSeconds - day * 86_400) * 1e9 + nanos[rowEnd - 1]!;
  return day;
}

/** Decides which rows of a stream are stored, one by one, and moves the stream's newest time on. */
export function admitRows(
  { streams, windowNs, headOf }: AdmissionContext,
  batch: Batch,
  stream: BatchStream,
  number: number,
): Admission {
  const ranges: { day: number; rowFrom: number; rowTo: number }[] = [];
  const dropped: number[] = [];
  const behind: BehindRow[] = [];
  const inBatch = new BatchDuplicates(batch, stream);
  const inHead = new Map<number, HeadDuplicates | undefined>();
  let newestDay = streams.newestDay[number]!;
  let newestTime = streams.newestTime[number]!;
  let dayBefore = noDay;
  let timeBefore = 0;
  for (let row = stream.rowStart; row < stream.rowEnd; row++) {
    const seconds = batch.seconds[row]!;
    const day = Math.floor(seconds / 86_400);
    const time = (seconds - day * 86_400) * 1e9 + batch.nanos[row]!;
    if (compare(day, time, dayBefore, timeBefore) < 0) inBatch.fall();
    dayBefore = day;
    timeBefore = time;
    if (compare(day, time, newestDay, newestTime) > 0) {
      newestDay = day;
      newestTime = time;
    } else if ((newestDay - day) * nsPerDay + (newestTime - time) > windowNs) {
      behind.push({ row, ...back(newestDay, newestTime, windowNs) });
      dropped.push(row);
      continue;
    } else if (inBatch.has(row) || duplicatesOf(day)?.has(row, time) === true) {
      dropped.push(row);
      continue;
    }
    const range = ranges[ranges.length - 1];
    if (range?.day === day && range.rowTo === row) range.rowTo = row + 1;
    else ranges.push({ day, rowFrom: row, rowTo: row + 1 });
  }
  streams.newestDay[number] = newestDay;
  streams.newestTime[number] = newestTime;
  return { ranges, dropped, behind };

  function duplicatesOf(day: number): HeadDuplicates | undefined {
    if (inHead.has(day)) return inHead.get(day);
    const head = headOf(day);
    const known = head?.chains.has(number) ? new HeadDuplicates(head, number, batch) : undefined;
    inHead.set(day, known);
    return known;
  }
}

/** UTC day (since the epoch) of a row, and ns since its start. */
export function timeOf(batch: Batch, row: number): { day: number; time: number } {
  const seconds = batch.seconds[row]!;
  const day = Math.floor(seconds / 86_400);
  return { day, time: (seconds - day * 86_400) * 1e9 + batch.nanos[row]! };
}

function compare(day: number, time: number, otherDay: number, otherTime: number): number {
  return day === otherDay ? time - otherTime : day - otherDay;
}

function ascends(batch: Batch, from: number, to: number): boolean {
  const { seconds, nanos } = batch;
  for (let row = from + 1; row < to; row++) {
    const step = seconds[row]! - seconds[row - 1]!;
    if (step < 0 || (step === 0 && nanos[row]! <= nanos[row - 1]!)) return false;
  }
  return true;
}

function back(day: number, time: number, ns: number): { oldestDay: number; oldestTime: number } {
  const oldest = time - ns;
  const days = Math.floor(oldest / nsPerDay);
  return { oldestDay: day + days, oldestTime: oldest - days * nsPerDay };
}

const nsPerDay = 86_400e9;
