import type { PushRefusal } from "@skald/contracts";
import { type Batch, type BatchStream, firstIndex } from "@skald/model";
import { Semaphore } from "@skald/runtime";
import type { BatchRange } from "@skald/storage";
import type { Head, HeadGrowth } from "../head/head.js";
import { type IngesterLimits, maxStreamsOf } from "../settings/options.js";
import {
  admitInOrder,
  admitRows,
  rowBytes,
  streamLimited,
  streamRateLimited,
  tooFarBehind,
} from "./admission.js";
import { ChangeTable } from "./change-table.js";
import { NumberedStreams } from "./numbered-streams.js";

export interface TenantContext {
  /** Makes the head of a day. */
  readonly createHead: (tenant: Tenant, day: number) => Head;
  readonly outOfOrderWindowNs: number;
}

/** A refusal to which others of its reason are added. */
type Counted = { -readonly [Key in keyof PushRefusal]: PushRefusal[Key] };

/** The changes of a push, or of a part of it, to the heads of its tenant, which are logged, then published or undone. */
export interface TenantAppend {
  readonly tenant: Tenant;
  /** Rows that were appended, in order. */
  readonly ranges: BatchRange[];
  /** Streams with appended rows: position in the push, and number. */
  readonly ordinals: number[];
  readonly streams: number[];
  /** Refused rows of the batch and duplicates, ascending. */
  readonly dropped: number[];
  /** Those of the whole push so far. */
  readonly refusals: Counted[];
  readonly heads: Map<Head, HeadGrowth>;
  /** Newest times before the push, as (stream, day, time). */
  readonly newestBefore: number[];
  duplicates: number;
}

/** The numbers of the streams of a batch. */
export interface NumberedBatch {
  /** By position in the batch; `noNumber` for a stream without rows, and for one too many. */
  readonly numbers: Int32Array;
  /** Streams that are new. */
  readonly created: number;
  /** Removals of streams before: after the next one a number may mean another stream. */
  readonly removals: number;
}

interface NumberedStream {
  readonly batch: Batch;
  readonly stream: BatchStream;
  readonly number: number;
}

const noNumber = -1;
/** Streams that are numbered between two yields. */
const streamsPerStep = 64;
/** Rows of a part of a push that the log gets in columns. */
const sizeOfPart = 16_384;
/** Each stream counts as this many rows of a part, refused streams too. */
const rowsPerStream = 8;
/** Pairs of a push with more names of metadata count as rows: each name may be a new one. */
const fewNames = 1024;
/** Most refusals of a push; further ones are added to the last of their kind. */
const maxRefusals = 10;

/** The streams and heads of one tenant. */
export class Tenant {
  readonly name: string;
  readonly streams = new NumberedStreams();
  readonly changes = new ChangeTable();
  /**
   * Is held by a push in parts: rows of other pushes between them would make those of later parts older than the newest of their
   * stream, and such rows are compared with all that the head has.
   */
  readonly line = new Semaphore(1);
  /** By day, the head that takes rows. */
  readonly heads = new Map<number, Head>();
  /** Heads that take no rows and are not segments yet, oldest first. */
  readonly frozen = new Set<Head>();
  readonly #context: TenantContext;
  #isPushedTo = false;

  constructor(name: string, context: TenantContext) {
    this.name = name;
    this.#context = context;
  }

  /** Whether this process got a push for the tenant. */
  get isPushedTo(): boolean {
    return this.#isPushedTo;
  }

  /**
   * Finds the number of each stream of a batch; new streams get one while the tenant may have more, else `noNumber`. That is most
   * of the work for a push of many streams, and it yields where other work may run first.
   */
  *numberStreams(
    { streams }: Batch,
    limits: IngesterLimits,
    nowMs: number,
  ): Generator<void, NumberedBatch> {
    this.#isPushedTo = true;
    const { removals } = this.streams;
    const numbers = new Int32Array(streams.length);
    let created = 0;
    for (let i = 0; i < streams.length; i++) {
      const before = this.streams.size;
      numbers[i] = this.#numberOf(streams[i] as BatchStream, limits, nowMs);
      created += this.streams.size - before;
      if (i % streamsPerStep === streamsPerStep - 1) yield;
    }
    return { numbers, created, removals };
  }

  /**
   * Appends the rows of a batch that the limits allow to the heads; they are not visible yet. Rows that the log gets in columns come
   * in parts, each of which must be logged before the next is asked for; those of a body are one part. The numbers of the streams
   * must be of `numberStreams`, and hold whenever a part is asked for: no stream may have been removed since.
   */
  *append(
    batch: Batch,
    numbers: Int32Array,
    limits: IngesterLimits,
    nowMs: number,
  ): Generator<TenantAppend, TenantAppend> {
    const refusals: Counted[] = [];
    const room = comesInParts(batch) ? sizeOfPart : Number.POSITIVE_INFINITY;
    let part = this.#beginPart(refusals);
    let size = 0;
    try {
      for (let i = 0; i < batch.streams.length; i++) {
        const stream = batch.streams[i] as BatchStream;
        if (stream.rowEnd === stream.rowStart) continue;
        const own = { batch, stream, number: numbers[i]! };
        size += rowsPerStream;
        const isTaken = this.#mayAppend(part, own, limits, nowMs);
        for (let rowStart = isTaken ? stream.rowStart : stream.rowEnd; ; ) {
          if (size >= room) {
            yield ended(part);
            part = this.#beginPart(refusals);
            size = 0;
          }
          if (rowStart === stream.rowEnd) break;
          const rowEnd = endOfRows(batch, rowStart, stream.rowEnd, room - size);
          const isWhole = rowEnd - rowStart === stream.rowEnd - stream.rowStart;
          const cut = isWhole ? own : { ...own, stream: { ...stream, rowStart, rowEnd } };
          this.#appendRows(part, cut, limits);
          size += sizeOfRows(batch, rowStart, rowEnd);
          rowStart = rowEnd;
        }
      }
    } catch (error) {
      this.undo(part);
      throw error;
    }
    return ended(part);
  }

  #beginPart(refusals: Counted[]): TenantAppend {
    return {
      tenant: this,
      ranges: [],
      ordinals: [],
      streams: [],
      dropped: [],
      refusals,
      heads: new Map(),
      newestBefore: [],
      duplicates: 0,
    };
  }

  /** Reverts `append`. The last of several must be reverted first. */
  undo(push: TenantAppend): void {
    for (const { head, before } of push.heads.values()) head.truncate(before);
    const { newestBefore } = push;
    for (let i = newestBefore.length - 3; i >= 0; i -= 3) {
      const stream = newestBefore[i] as number;
      this.streams.newestDay[stream] = newestBefore[i + 1] as number;
      this.streams.newestTime[stream] = newestBefore[i + 2] as number;
    }
  }

  /** Appends logged rows to a head without checks, and makes them visible. */
  restore(batch: Batch, range: BatchRange, head: Head): void {
    head.append(batch, range.rowFrom, range.rowTo, range.stream);
    head.publish(head.mark());
  }

  /** Sets the newest times of streams to those of a head, if these are newer. */
  noteNewestOf(head: Head): void {
    for (const { columns, runCount } of head.blocks) {
      for (let run = 0; run < runCount; run++) {
        this.streams.noteNewest(columns.runStream[run]!, head.day, columns.runMax[run]!);
      }
    }
  }

  /** Returns the head that takes rows of a day; creates it if there is none. */
  headFor(day: number): Head {
    const known = this.heads.get(day);
    if (known !== undefined) return known;
    const head = this.#context.createHead(this, day);
    this.heads.set(day, head);
    return head;
  }

  /** All heads whose rows are in no segment yet. */
  *unsealed(): Generator<Head> {
    yield* this.frozen;
    yield* this.heads.values();
  }

  /** Whether the limits of the tenant allow a stream and its rate; else all of its rows are refused. */
  #mayAppend(
    push: TenantAppend,
    { batch, stream, number }: NumberedStream,
    limits: IngesterLimits,
    nowMs: number,
  ): boolean {
    const bytes = bytesOfStream(batch, stream);
    if (number === noNumber) {
      if (!refuse(push, stream, "stream_limit", bytes))
        push.refusals.push({ ...streamLimited(this.name, stream, bytes) });
      return false;
    }
    if (this.#takeTokens(number, bytes, limits, nowMs)) return true;
    const rate = { bytes, limitBytes: limits.per_stream_rate_limit };
    if (!refuse(push, stream, "per_stream_rate_limit", bytes))
      push.refusals.push({ ...streamRateLimited(this.name, batch, stream, rate) });
    return false;
  }

  #appendRows(
    push: TenantAppend,
    { batch, stream, number }: NumberedStream,
    limits: IngesterLimits,
  ): void {
    const { newestDay, newestTime } = this.streams;
    push.newestBefore.push(number, newestDay[number]!, newestTime[number]!);
    const day = admitInOrder(this.streams, batch, stream, number);
    if (day !== undefined) {
      const { ordinal, rowStart: rowFrom, rowEnd: rowTo } = stream;
      push.ordinals.push(ordinal);
      push.streams.push(number);
      this.#takeRange(push, batch, { stream: number, rowFrom, rowTo }, day);
      return;
    }
    // A tenant that takes rows of any age takes them in any order: history is brought in beside what agents push.
    const windowNs = limits.reject_old_samples
      ? this.#context.outOfOrderWindowNs
      : Number.POSITIVE_INFINITY;
    const headOf = (day: number) => this.heads.get(day);
    const context = { streams: this.streams, windowNs, headOf };
    const { ranges, dropped, behind } = admitRows(context, batch, stream, number);
    for (const row of dropped) push.dropped.push(row);
    push.duplicates += dropped.length - behind.length;
    if (behind.length > 0) {
      const refusal = tooFarBehind(this.name, batch, stream, behind);
      const { reason, entries, bytes } = refusal;
      if (!isAdded(push, reason, entries, bytes)) push.refusals.push({ ...refusal });
    }
    if (ranges.length === 0) return;
    push.ordinals.push(stream.ordinal);
    push.streams.push(number);
    for (const { day, rowFrom, rowTo } of ranges) {
      this.#takeRange(push, batch, { stream: number, rowFrom, rowTo }, day);
    }
  }

  #takeRange(push: TenantAppend, batch: Batch, range: BatchRange, day: number): void {
    const head = this.headFor(day);
    if (!push.heads.has(head)) {
      const before = head.mark();
      push.heads.set(head, { head, before, after: before });
    }
    head.append(batch, range.rowFrom, range.rowTo, range.stream);
    push.ranges.push(range);
  }

  #numberOf(stream: BatchStream, limits: IngesterLimits, nowMs: number): number {
    if (stream.rowEnd === stream.rowStart) return noNumber;
    const known = this.streams.find(stream.text);
    if (known !== undefined) {
      this.streams.seenMs[known] = nowMs;
      return known;
    }
    const maxStreams = maxStreamsOf(limits);
    if (maxStreams > 0 && this.streams.size >= maxStreams) return noNumber;
    return this.streams.add(stream.text, nowMs, limits.per_stream_rate_limit_burst);
  }

  /** Takes tokens from the bucket of a stream; a push that does not fit takes none. */
  #takeTokens(stream: number, bytes: number, limits: IngesterLimits, nowMs: number): boolean {
    const { tokens, tokensMs } = this.streams;
    const earned = ((nowMs - tokensMs[stream]!) / 1000) * limits.per_stream_rate_limit;
    const available = Math.min(
      limits.per_stream_rate_limit_burst,
      tokens[stream]! + Math.max(0, earned),
    );
    tokensMs[stream] = nowMs;
    tokens[stream] = bytes <= available ? available - bytes : available;
    return bytes <= available;
  }
}

/** Whether a push is appended in parts. A body is one part, because the log keeps it as it came. */
export function comesInParts(batch: Batch): boolean {
  const size = sizeOfRows(batch, 0, batch.rowCount) + rowsPerStream * batch.streams.length;
  return batch.source === undefined && size > sizeOfPart;
}

function sizeOfRows({ metaStart, metaNames }: Batch, from: number, to: number): number {
  return to - from + (metaNames.length > fewNames ? metaStart[to]! - metaStart[from]! : 0);
}

/** The end of the first rows that have room, which one row always has. */
function endOfRows(batch: Batch, from: number, to: number, room: number): number {
  return firstIndex(from + 1, to, (end) => sizeOfRows(batch, from, end + 1) > room);
}

/** A part whose rows are all appended. */
function ended(part: TenantAppend): TenantAppend {
  for (const growth of part.heads.values()) growth.after = growth.head.mark();
  return part;
}

/** Drops the rows of a stream. False if the refusal is not counted yet, see `isAdded`. */
function refuse(
  push: TenantAppend,
  { rowStart, rowEnd }: BatchStream,
  reason: PushRefusal["reason"],
  bytes: number,
): boolean {
  for (let row = rowStart; row < rowEnd; row++) push.dropped.push(row);
  return isAdded(push, reason, rowEnd - rowStart, bytes);
}

/** Adds to the last refusal of a reason. Of many only the first have a text, which takes longer than to refuse: false for these. */
function isAdded(
  { refusals }: TenantAppend,
  reason: PushRefusal["reason"],
  entries: number,
  bytes: number,
): boolean {
  if (refusals.length < maxRefusals) return false;
  for (let i = refusals.length - 1; i >= 0; i--) {
    const last = refusals[i]!;
    if (last.reason !== reason) continue;
    last.entries += entries;
    last.bytes += bytes;
    return true;
  }
  return false;
}

function bytesOfStream(batch: Batch, { rowStart, rowEnd }: BatchStream): number {
  let bytes = 0;
  if (batch.metaStart[rowStart] === batch.metaStart[rowEnd]) {
    for (let row = rowStart; row < rowEnd; row++) bytes += batch.lineLength[row]!;
    return bytes;
  }
  for (let row = rowStart; row < rowEnd; row++) bytes += rowBytes(batch, row);
  return bytes;
}
