import type { Block } from "@skald/model";
import type { Source } from "../source/source.js";
import type { FoundRows } from "./found-rows.js";

/** A segment among others that it is compared with. */
export interface ComparedSource {
  readonly source: Source;
  /** In order of arrival. */
  readonly place: number;
  /** Whether its rows are to be told. */
  readonly isWanted: boolean;
  /** Those that an earlier one has too. */
  readonly found: FoundRows;
}

/** A stretch of rows of one stream in one block. */
export interface StreamRun {
  readonly block: number;
  readonly from: number;
  readonly to: number;
  /** ns since the base, inclusive */
  readonly minTime: number;
  readonly maxTime: number;
}

/** A stretch of rows of a stream that segments share. */
export interface SharedRun extends StreamRun {
  readonly of: ComparedSource;
  readonly stream: number;
  /** Minutes of the day of which all rows are told without a look at them. */
  readonly named?: ReadonlySet<number> | undefined;
}

/** From when to when, inclusive, in ns since a base. */
export interface Times {
  readonly from: number;
  readonly to: number;
}

/** When the first and the last row of a source are; of one without rows it ends before it begins. */
export function timesOf(source: Source): Times {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (let block = 0; block < source.blockCount; block++) {
    const { count, minTime, maxTime } = source.runs(block);
    for (let run = 0; run < count; run++) {
      if (minTime[run]! < from) from = minTime[run]!;
      if (maxTime[run]! > to) to = maxTime[run]!;
    }
  }
  return { from, to };
}

/** Memory of decoded blocks that stay: the next stream is most often in the same ones. */
const maxBlockBytes = 64 * 1024 * 1024;
/** What a row of a block takes besides its line. */
const rowBytes = 32;

/** More blocks than any segment has. */
const maxBlocks = 2 ** 26;

/** Decoded blocks of many segments, the least recently used given up first. */
export class SharedBlocks {
  /** The least recently used first. */
  readonly #known = new Map<number, { readonly block: Block; readonly bytes: number }>();
  #bytes = 0;

  of({ source, place }: ComparedSource, number: number): Block {
    const key = place * maxBlocks + number;
    let known = this.#known.get(key);
    if (known === undefined) {
      const { count, rowStart, lineBytes } = source.runs(number);
      const lines = lineBytes.reduce((sum, bytes) => sum + bytes, 0);
      known = { block: source.block(number), bytes: 200 + lines + rowStart[count]! * rowBytes };
      this.#known.set(key, known);
      this.#bytes += known.bytes;
      this.#dropOld();
    } else if (this.#bytes > maxBlockBytes / 2) {
      // Only where some are about to go it matters which.
      this.#known.delete(key);
      this.#known.set(key, known);
    }
    return known.block;
  }

  /** One that is larger than all may be has all of it to itself. */
  #dropOld(): void {
    for (const [key, { bytes }] of this.#known) {
      if (this.#bytes <= maxBlockBytes || this.#known.size === 1) return;
      this.#known.delete(key);
      this.#bytes -= bytes;
    }
  }
}
