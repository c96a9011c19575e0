import { crc32 } from "node:zlib";
import { internal } from "@skald/model";
import type { PageMemory } from "../../bytes.js";
import { zstd } from "../../zstd/zstd.js";
import { wrongChecksum } from "../corrupt.js";
import type { RangeReader } from "../range-reader.js";
import type { BlockRange, PageSet } from "../segment.js";
import type { SegmentIndex } from "./index-reader.js";

/** A page, checked and decompressed. Views with padding behind them. */
export interface DecodedPage {
  readonly levels: Uint8Array;
  readonly body: Uint8Array;
  /** Values that are not null. */
  readonly values: number;
}

/** Fetches pages by their places, verifies the checksum of each at every read, and decompresses. */
export class PageReader {
  readonly #reader: RangeReader;
  readonly #index: SegmentIndex;

  constructor(reader: RangeReader, index: SegmentIndex) {
    this.#reader = reader;
    this.#index = index;
  }

  page(
    column: number,
    block: number,
    {
      pages,
      memory,
    }: { readonly pages?: PageSet | undefined; readonly memory?: PageMemory | undefined },
  ): DecodedPage {
    const places = this.#index.pages(column);
    const offset = places.offsets[block]!;
    const levelBytes = places.levelBytes[block]!;
    const storedBytes = places.storedBytes[block]!;
    const rawBytes = places.rawBytes[block]!;
    const stored = this.#stored(offset, levelBytes + storedBytes, pages);
    const found = crc32(stored);
    if (found !== places.crcs[block]) {
      const page = `the page of ${this.#index.columnName(column)}, block ${block}, at byte ${offset}`;
      throw internal(wrongChecksum(page, places.crcs[block]!, found));
    }
    const body = stored.subarray(levelBytes);
    return {
      levels: stored.subarray(0, levelBytes),
      body: storedBytes === rawBytes ? body : zstd.decompress(body, rawBytes, memory),
      values: places.values[block]!,
    };
  }

  /** The ranges of the file that hold the pages of some columns, near ones joined. */
  ranges(columns: readonly number[], blocks: BlockRange): ByteRange[] {
    const ranges: ByteRange[] = [];
    for (const column of columns) {
      const { offsets, levelBytes, storedBytes, values } = this.#index.pages(column);
      for (let block = blocks.from; block < blocks.to; block++) {
        // Pages of nothing but nulls are never asked for.
        if (values[block] === 0) continue;
        const from = offsets[block]!;
        const to = from + levelBytes[block]! + storedBytes[block]!;
        ranges.push({ from, to });
      }
    }
    return joinRanges(ranges);
  }

  #stored(offset: number, length: number, pages: PageSet | undefined): Uint8Array {
    const held = pages?.find(offset, length);
    if (held !== undefined) return held;
    if (this.#reader.kind === "sync") return this.#reader.read(offset, length);
    throw new Error(`page at ${offset} of ${this.#reader.name} was not fetched before its use`);
  }
}

/** The bytes `from .. to)` of a file. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** Ranges held in memory, ascending and apart. */
export function pageSet(ranges: readonly ByteRange[], parts: readonly Uint8Array[]): PageSet {
  return {
    sizeBytes: ranges.reduce((sum, range) => sum + range.to - range.from, 0),
    find(offset, length) {
      let low = 0;
      let high = ranges.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (ranges[middle]!.to <= offset) low = middle + 1;
        else high = middle;
      }
      const range = ranges[low];
      if (range === undefined || offset < range.from || offset + length > range.to)
        return undefined;
      return parts[low]!.subarray(offset - range.from, offset - range.from + length);
    },
  };
}

/** Reading this much for nothing costs less than another read. */
const maxGapBytes = 16 * 1024;

function joinRanges(ranges: ByteRange[]): ByteRange[] {
  ranges.sort((a, b) => a.from - b.from);
  const joined: { from: number; to: number }[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && range.from - last.to <= maxGapBytes) {
      last.to = Math.max(last.to, range.to);
    } else {
      joined.push({ ...range });
    }
  }
  return joined;
}
