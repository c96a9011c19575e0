import type { PushRefusal } from "@skald/contracts";
import { type Batch, type BatchStream, dayNs, formatRfc3339, formatSize } from "@skald/model";
import { BatchDuplicates, HeadDuplicates } from "../head/duplicates.js";
import type { Head } from "../head/head.js";
import { type NumberedStreams, noDay } from "./numbered-streams.js";

/** Accepted rows of one stream that lie in one UTC day. */
export interface AdmittedRange {
  readonly day: number;
  readonly rowFrom: number;
  readonly rowTo: number;
}

export interface Admission {
  readonly ranges: readonly AdmittedRange[];
  /** Duplicates and refused rows, ascending. */
  readonly dropped: readonly number[];
  /** Refused rows, which are too far behind the newest row of the stream. */
  readonly behind: readonly BehindRow[];
}

export interface BehindRow {
  readonly row: number;
  /** The oldest time that would have been accepted. */
  readonly oldestDay: number;
  readonly oldestTime: number;
}

export interface AdmissionContext {
  readonly streams: NumberedStreams;
  /** A row may be this far behind the newest one of its stream. */
  readonly windowNs: number;
  /** The head that takes rows of a day, if there is one. */
  readonly headOf: (day: number) => Head | undefined;
}

/**
 * Admits all rows of a stream if they are newer than its newest time, ascend strictly and are of one day, as agents send
 * them. It moves the newest time on and returns the day, or returns undefined when `admitRows` must check them one by
 * one.
 */
export function admitInOrder(
  streams: NumberedStreams,
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

/** Decides row by row which rows of a stream are stored, and moves the stream's newest time on. */
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

/** The UTC day of a row since the epoch, and its ns since the start of that day. */
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

/** Most entries that one refusal text names. */
const maxEntriesNamed = 10;

/** The refusal of rows that are further behind the newest row of their stream than the window allows. */
export function tooFarBehind(
  tenant: string,
  batch: Batch,
  stream: BatchStream,
  behind: readonly BehindRow[],
): PushRefusal {
  const reasons = behind.slice(0, maxEntriesNamed).map(({ row, oldestDay, oldestTime }) => {
    const time = formatSeconds(nsOf(batch, row));
    const oldest = formatSeconds(BigInt(oldestDay) * dayNs + BigInt(Math.floor(oldestTime)));
    return `entry too far behind, entry timestamp is: ${time}, oldest acceptable timestamp is: ${oldest}`;
  });
  return {
    status: 400,
    reason: "too_far_behind",
    message: wrap(tenant, batch, stream, { rows: behind.map(({ row }) => row), reasons }),
    entries: behind.length,
    bytes: behind.reduce((sum, { row }) => sum + rowBytes(batch, row), 0),
  };
}

/** The refusal of all rows of a stream, because its rate limit has less left. */
export function streamRateLimited(
  tenant: string,
  batch: Batch,
  stream: BatchStream,
  { bytes, limitBytes }: { bytes: number; limitBytes: number },
): PushRefusal {
  const reason = `Per stream rate limit exceeded (limit: ${formatSize(limitBytes)}/sec) while attempting to ingest for stream '${stream.text}' totaling ${formatSize(bytes)}, consider splitting a stream via additional labels or contact your Loki administrator to see if the limit can be increased`;
  const entries = stream.rowEnd - stream.rowStart;
  const rows = Array.from(
    { length: Math.min(entries, maxEntriesNamed) },
    (_, i) => stream.rowStart + i,
  );
  return {
    status: 429,
    reason: "per_stream_rate_limit",
    message: wrap(tenant, batch, stream, { rows, reasons: rows.map(() => reason), total: entries }),
    entries,
    bytes,
  };
}

/** The refusal of all rows of a new stream, because the tenant has too many streams. */
export function streamLimited(tenant: string, stream: BatchStream, bytes: number): PushRefusal {
  return {
    status: 429,
    reason: "stream_limit",
    message: `maximum active stream limit exceeded when trying to create stream ${stream.text}, reduce the number of active streams (reduce labels or reduce label values), or contact your Loki administrator to see if the limit can be increased, user: '${tenant}'`,
    entries: stream.rowEnd - stream.rowStart,
    bytes,
  };
}

/** The size of a row for limits: line, metadata names and values. */
export function rowBytes(batch: Batch, row: number): number {
  let bytes = batch.lineLength[row]!;
  for (let pair = batch.metaStart[row]!; pair < batch.metaStart[row + 1]!; pair++) {
    const name = batch.metaNames[batch.metaName[pair]!] as string;
    bytes += name.length + batch.metaValueLength[pair]!;
  }
  return bytes;
}

interface Ignored {
  readonly rows: readonly number[];
  /** The reasons of the first rows. */
  readonly reasons: readonly string[];
  /** Number of ignored rows, when it is larger than that of `rows`. */
  readonly total?: number;
}

function wrap(tenant: string, batch: Batch, stream: BatchStream, ignored: Ignored): string {
  let text = "";
  for (const [i, reason] of ignored.reasons.entries()) {
    const time = formatGoTime(nsOf(batch, ignored.rows[i] as number));
    text += `entry with timestamp ${time} ignored, reason: '${reason}',\n`;
  }
  const total = ignored.total ?? ignored.rows.length;
  const of = stream.rowEnd - stream.rowStart;
  return `${text}user '${tenant}', total ignored: ${total} out of ${of} for stream: ${stream.text}`;
}

function nsOf(batch: Batch, row: number): bigint {
  const { day, time } = timeOf(batch, row);
  return BigInt(day) * dayNs + BigInt(time);
}

/** `2026-11-20 21:11:23.506 +0000 UTC` */
function formatGoTime(ns: bigint): string {
  return formatRfc3339(ns).replace("T", " ").replace("Z", " +0000 UTC");
}

/** `2026-11-20T21:11:23Z`, without the fraction. */
function formatSeconds(ns: bigint): string {
  return formatRfc3339(ns).replace(/\.\d+Z$/, "Z");
}
