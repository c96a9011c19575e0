import type { RowMask, SkippedMinutes, StreamMinutes } from "@skald/contracts";
import { type Block, lowerBound, type RunTable } from "@skald/model";
import { type BlockRange, type LabelTable, minuteNs } from "@skald/storage";

export const emptyMask: RowMask = { blocks: new Uint32Array(0), rows: [] };

/** The rows that any of the masks names. */
export function uniteMasks(parts: readonly RowMask[]): RowMask {
  const filled = parts.filter((part) => part.blocks.length > 0);
  if (filled.length <= 1) return filled[0] ?? emptyMask;
  const byBlock = new Map<number, Uint32Array[]>();
  for (const part of filled) {
    part.blocks.forEach((block, i) => {
      const lists = byBlock.get(block) ?? [];
      lists.push(part.rows[i]!);
      byBlock.set(block, lists);
    });
  }
  const blocks = Uint32Array.from(byBlock.keys()).sort();
  return { blocks, rows: [...blocks].map((block) => mergeRows(byBlock.get(block) ?? [])) };
}

/** Ascending, each number once. */
function mergeRows(lists: readonly Uint32Array[]): Uint32Array {
  if (lists.length === 1) return lists[0]!;
  const all = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  let at = 0;
  for (const list of lists) {
    all.set(list, at);
    at += list.length;
  }
  return all.sort().filter((row, i) => row !== all[i - 1]);
}

/** The same mask in shared memory, which crosses to a thread without a copy. */
export function shareMask({ blocks, rows }: RowMask): RowMask {
  if (blocks.length === 0) return emptyMask;
  const shared = new Uint32Array(new SharedArrayBuffer(maskRows({ blocks, rows }) * 4));
  let at = 0;
  const lists = rows.map((list) => {
    shared.set(list, at);
    at += list.length;
    return shared.subarray(at - list.length, at);
  });
  return { blocks, rows: lists };
}

/** Counts the ascending numbers in [from, to). */
export function countWithin(sorted: Uint32Array, from: number, to: number): number {
  return lowerBound(sorted, to) - lowerBound(sorted, from);
}

/** Counts the rows of a mask. */
export function maskRows({ rows }: RowMask): number {
  return rows.reduce((sum, list) => sum + list.length, 0);
}

/** Bytes of memory that a mask takes. */
export function maskBytes({ rows }: RowMask): number {
  return rows.reduce((sum, list) => sum + list.byteLength + 100, 100);
}

/** Collects rows by block, in any order. */
export class FoundRows {
  readonly #byBlock = new Map<number, number[]>();

  add(block: number, row: number): void {
    const rows = this.#byBlock.get(block);
    if (rows === undefined) this.#byBlock.set(block, [row]);
    else rows.push(row);
  }

  mask(): RowMask {
    const blocks = Uint32Array.from(this.#byBlock.keys()).sort();
    const rows = [...blocks].map((block) => Uint32Array.from(this.#byBlock.get(block)!).sort());
    return blocks.length === 0 ? emptyMask : { blocks, rows };
  }
}

/** The parts of a source that say which of its rows lie in which minutes. */
interface TimedRows {
  readonly baseNs: bigint;
  readonly streams: LabelTable;
  runs(block: number): RunTable;
  block(block: number): Pick<Block, "timestamps">;
}

/** What minutes to leave out make of the blocks of a source. */
export interface SkippedRows {
  /** By block, a flag for each run: 1 where all of its rows are left out. */
  readonly runs: ReadonlyMap<number, Uint8Array>;
  /** Rows of other runs. */
  readonly mask: RowMask;
}

/**
 * Names the rows of some streams, in some blocks, that lie in minutes to leave out. Times are read only where a minute's edge cuts a
 * run.
 */
export function skipRows(
  source: TimedRows,
  skipped: SkippedMinutes,
  selected: Uint32Array,
  blocks: BlockRange,
): SkippedRows {
  const minutes = new MinuteFlags(source, skipped, selected);
  const isSelected = new Uint8Array(source.streams.count);
  for (const one of selected) isSelected[one] = 1;
  const runs = new Map<number, Uint8Array>();
  const cut = new FoundRows();
  for (let block = blocks.from; block < blocks.to; block++) {
    const table = source.runs(block);
    const { count, stream, rowStart, minTime, maxTime } = table;
    let flags: Uint8Array | undefined;
    for (let run = 0; run < count; run++) {
      if (isSelected[stream[run]!] !== 1) continue;
      const cover = minutes.coverOf(stream[run]!, minTime[run]!, maxTime[run]!);
      if (cover === "none") continue;
      if (cover === "all") {
        flags ??= new Uint8Array(count);
        flags[run] = 1;
        continue;
      }
      const times = source.block(block).timestamps();
      for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
        if (minutes.has(stream[run]!, times[row]!)) cut.add(block, row);
      }
    }
    if (flags !== undefined) runs.set(block, flags);
  }
  return { runs, mask: cut.mask() };
}

const minutesPerDay = 24 * 60;

/** Minutes of a source's day to leave out, by stream. */
class MinuteFlags {
  /** Of all streams. */
  readonly #all = new Uint8Array(minutesPerDay);
  /** Of the selected streams of which more is left out. */
  readonly #byStream = new Map<number, Uint8Array>();

  constructor(
    { baseNs, streams }: TimedRows,
    { all, some }: SkippedMinutes,
    selected: Uint32Array,
  ) {
    const first = firstMinute(baseNs);
    const placeOf = (minute: number) => (minute - first) >>> 0;
    for (let i = 0; i < all.length; i += 2) {
      for (let at = all[i]!; at < all[i + 1]!; at++) this.#set(this.#all, placeOf(at));
    }
    if (some.streams.length === 0) return;
    const byKey = numberMinutes(some);
    for (const stream of selected) {
      const own = byKey.get(streamKey(streams, stream));
      if (own === undefined) continue;
      const flags = this.#all.slice();
      for (const minute of own.keys()) this.#set(flags, placeOf(minute));
      this.#byStream.set(stream, flags);
    }
  }

  /** Minutes of other days are none of the source. */
  #set(flags: Uint8Array, minute: number): void {
    if (minute < minutesPerDay) flags[minute] = 1;
  }

  #of(stream: number): Uint8Array {
    return this.#byStream.get(stream) ?? this.#all;
  }

  has(stream: number, time: number): boolean {
    return this.#of(stream)[Math.floor(time / minuteNs)] === 1;
  }

  /** How much of a stretch of time is left out. */
  coverOf(stream: number, minTime: number, maxTime: number): "none" | "part" | "all" {
    const flags = this.#of(stream);
    const first = Math.floor(minTime / minuteNs);
    const last = Math.floor(maxTime / minuteNs);
    let skipped = 0;
    for (let minute = first; minute <= last; minute++) skipped += flags[minute]!;
    return skipped === 0 ? "none" : skipped === last - first + 1 ? "all" : "part";
  }
}

/** The name of a stream among sources: 53 bits of its hash. */
export function streamKey({ hashes }: LabelTable, stream: number): number {
  return hashes[2 * stream]! + 2 ** 32 * (hashes[2 * stream + 1]! & 0x1fffff);
}

/** The first minute of a source whose times count from `baseNs`, a whole minute. */
export function firstMinute(baseNs: bigint): number {
  return Number(baseNs / BigInt(minuteNs));
}

/** The minute of a time in ns since the base of a source, modulo 2^32. */
export function minuteAt(first: number, time: number): number {
  return (first + Math.floor(time / minuteNs)) >>> 0;
}

/** Minutes by stream, with their places in the list. */
export function numberMinutes(list: StreamMinutes): Map<number, Map<number, number>> {
  const byStream = new Map<number, Map<number, number>>();
  let at = 0;
  list.streams.forEach((stream, i) => {
    const minutes = byStream.get(stream) ?? new Map<number, number>();
    for (let left = list.counts[i]!; left > 0; left--) minutes.set(list.minutes[at]!, at++);
    byStream.set(stream, minutes);
  });
  return byStream;
}

/** The minutes of some streams as columns. */
export function streamMinutes(byStream: ReadonlyMap<number, readonly number[]>): StreamMinutes {
  const lists = [...byStream.values()];
  return {
    streams: Float64Array.from(byStream.keys()),
    counts: Uint32Array.from(lists, ({ length }) => length),
    minutes: Uint32Array.from(lists.flat()),
  };
}
