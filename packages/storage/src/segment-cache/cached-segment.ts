import type { SegmentRef } from "@skald/model";
import type { ObjectRange } from "../object-store/object-store.js";
import type { IndexImage } from "../segment/index-image.js";
import { type FileRangeReader, openOver } from "../segment/range-reader.js";
import { type OpenedSegmentFile, openSegment } from "../segment/read/reader.js";
import type { BlockRange, ColumnSelection } from "../segment/segment.js";

/** The unit in which segments are fetched and kept: a slot is wholly in the cache or not at all. */
export const slotBytes = 64 * 1024;

/** An object of the store as threads read it: a file that has some of its slots. */
export interface CachedObject {
  readonly key: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** A byte per slot, in memory shared with the thread that fetches: 1 once the slot is in the file. */
  readonly slots: SharedArrayBuffer;
}

/** A segment of the store with some of its slots in a file of this machine. */
export interface CachedSegment extends SegmentRef {
  readonly cached: CachedObject;
  /** Stored bytes that a scan which may end early asks for ahead. */
  readonly aheadBytes: number;
  /** What was fetched for the job that reads it, of all its sources together. */
  readonly fetched: FetchedForJob;
}

interface FetchedForJob {
  readonly requests: number;
  readonly slots: number;
  readonly bytes: number;
  /** Time spent waiting for it. */
  readonly ns: number;
}

/** Slots `from .. to)` of an object. */
export interface SlotRange {
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

/** Thrown by a read of what is not in the cache yet; fetched, the same read succeeds. */
export class SlotsMissing extends Error {
  readonly ranges: readonly SlotRange[];

  constructor(ranges: readonly SlotRange[]) {
    super(`${ranges.length} ranges are not in the cache`);
    this.name = "SlotsMissing";
    this.ranges = ranges;
  }
}

export interface OpenedCachedSegment extends OpenedSegmentFile {
  /** Missing slots that hold columns of some blocks; of the blocks, in their order, only as many as `maxBytes` hold. */
  missing(blocks: readonly number[], columns: ColumnSelection, maxBytes: number): SlotRange[];
  /** Slots that were read since it was opened, each as often as it was. */
  slotsRead(): number;
}

export function isCached(ref: object): ref is CachedSegment {
  return "cached" in ref;
}

/** As `openSegmentFile`, for a segment of the cache. Reads throw SlotsMissing besides. */
export function openCachedSegment(ref: CachedSegment, image?: IndexImage): OpenedCachedSegment {
  return openOver(ref.cached.path, undefined, (file) => {
    const reader = new SlotReader(file, ref.cached);
    const segment = openSegment(reader, ref, image);
    const missing = (blocks: readonly number[], columns: ColumnSelection, maxBytes: number) =>
      reader.missingOf(blocks, maxBytes, (range) => segment.readPages(range, columns));
    return { segment, missing, slotsRead: () => reader.slotsRead, close: file.close };
  });
}

/** Reads a file of the cache as if it were the whole object. */
class SlotReader {
  readonly kind = "sync";
  readonly name: string;
  readonly sizeBytes: number;
  readonly #key: string;
  readonly #slots: Uint8Array;
  readonly #file: FileRangeReader;
  slotsRead = 0;
  /** The slots of all reads, instead of their bytes, while it is asked what is missing. */
  #noted: Set<number> | undefined;

  constructor(file: FileRangeReader, { key, path, sizeBytes, slots }: CachedObject) {
    this.name = path;
    this.sizeBytes = sizeBytes;
    this.#key = key;
    this.#slots = new Uint8Array(slots);
    this.#file = file;
  }

  read(offset: number, length: number, memory?: Parameters<FileRangeReader["read"]>[2]) {
    const from = Math.floor(offset / slotBytes);
    const to = Math.ceil((offset + length) / slotBytes);
    if (this.#noted !== undefined) {
      for (let slot = from; slot < to; slot++) this.#noted.add(slot);
      return new Uint8Array(0);
    }
    for (let slot = from; slot < to; slot++) {
      if (!this.#has(slot)) throw new SlotsMissing([{ key: this.#key, from, to }]);
    }
    this.slotsRead += to - from;
    return this.#file.read(offset, length, memory);
  }

  expect(ranges: readonly ObjectRange[]): void {
    const missing = new Set<number>();
    for (const { offset, length } of ranges) {
      const to = Math.ceil((offset + length) / slotBytes);
      for (let slot = Math.floor(offset / slotBytes); slot < to; slot++) {
        if (!this.#has(slot)) missing.add(slot);
      }
    }
    if (missing.size > 0) throw new SlotsMissing(rangesOf(this.#key, ascending(missing)));
  }

  missingOf(
    blocks: readonly number[],
    maxBytes: number,
    read: (range: BlockRange) => unknown,
  ): SlotRange[] {
    const noted = new Set<number>();
    this.#noted = noted;
    try {
      for (const range of neighbours(blocks)) {
        if (noted.size * slotBytes >= maxBytes) break;
        read(range);
      }
    } finally {
      this.#noted = undefined;
    }
    const missing = [...noted].filter((slot) => !this.#has(slot));
    return rangesOf(this.#key, ascending(missing));
  }

  #has(slot: number): boolean {
    return Atomics.load(this.#slots, slot) === 1;
  }
}

/** Blocks that lie together are read together, in groups that a limit in bytes can end between. */
const maxGroup = 16;

function* neighbours(blocks: readonly number[]): Generator<BlockRange> {
  let from = 0;
  let to = 0;
  for (const block of blocks) {
    if (block === to && to - from < maxGroup && to > from) {
      to++;
      continue;
    }
    if (to > from) yield { from, to };
    from = block;
    to = block + 1;
  }
  if (to > from) yield { from, to };
}

function ascending(slots: Iterable<number>): number[] {
  return [...slots].sort((a, b) => a - b);
}

function rangesOf(key: string, slots: readonly number[]): SlotRange[] {
  const ranges: { key: string; from: number; to: number }[] = [];
  for (const slot of slots) {
    const last = ranges.at(-1);
    if (last?.to === slot) last.to++;
    else ranges.push({ key, from: slot, to: slot + 1 });
  }
  return ranges;
}
