import { crc32 } from "node:zlib";
import {
  chooseKeys,
  collectNeedleKeys,
  maxRibbonKeys,
  slotsFor,
  solveNeedleFilter,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import type { SortedBlock } from "../write/layout.js";
import {
  type FilterBlock,
  type FilterDomain,
  type FilterGroup,
  filterDomains,
  maxGroupBlocks,
} from "./filter-table.js";
import { valueKeys } from "./value-keys.js";

/** A filter takes at most this part of the bytes that it is about: a block of random letters has too many keys. */
const maxShare = 0.03;
/** So many keys, 136 bytes, are never too many. */
const fewKeys = 1000;
/** Slots a key takes, of which the share is counted. */
const slotsPerKey = 1.06;
/** All filters of a group are as large as its largest, so one that would waste more begins another group. */
const maxSpread = 1.15;
/** A difference of so many keys does not matter. */
const spreadMin = 64;

/** The filters of a group as they are written. */
export interface WrittenGroup extends FilterGroup {
  readonly bits: Uint8Array;
  readonly crc: number;
}

/**
 * Makes the filters of the blocks of a segment: of their lines and of their metadata, in groups of blocks that follow each other.
 * Holds the keys of one group (about 10 MB) and the filters of the segment (about 1.5 % of its lines).
 */
export class FilterWriter {
  readonly groups: WrittenGroup[] = [];
  readonly #open: Readonly<Record<FilterDomain, OpenGroup>> = {
    0: new OpenGroup(filterDomains.lines, this.groups),
    1: new OpenGroup(filterDomains.metadata, this.groups),
  };

  readonly #moreNames: readonly string[];

  /** `moreNames` are the names of the pairs of metadata that blocks bring. */
  constructor(moreNames: readonly string[]) {
    this.#moreNames = moreNames;
  }

  get blocks(): Readonly<Record<FilterDomain, readonly FilterBlock[]>> {
    return { 0: this.#open[0].blocks, 1: this.#open[1].blocks };
  }

  add(block: SortedBlock): void {
    const { lines, metadata, more, rowCount } = block;
    const lineBytes = sizeOf(lines, rowCount);
    const { mixed, plain, hasSigns } = collectNeedleKeys(lines.bytes, lines.offsets, rowCount);
    this.#open[0].add(mixed, plain, maxKeys(lineBytes), hasSigns);
    let bytes = lineBytes + more.values.length;
    for (const column of metadata.values()) bytes += sizeOf(column, rowCount);
    const values = valueKeys(block, this.#moreNames);
    this.#open[1].add(values, noKeys, maxKeys(bytes), false);
  }

  /** Ends the last groups; nothing can be added any more. */
  finish(): void {
    this.#open[0].finish();
    this.#open[1].finish();
  }
}

const noKeys = new Uint32Array(0);

/** The group of one domain that is being collected. */
class OpenGroup {
  readonly blocks: FilterBlock[] = [];
  readonly #domain: FilterDomain;
  readonly #written: WrittenGroup[];
  readonly #memory = spareMemory.pop() ?? new KeyMemory();
  #keys: Uint32Array[] = [];
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor(domain: FilterDomain, written: WrittenGroup[]) {
    this.#domain = domain;
    this.#written = written;
  }

  add(mixed: Uint32Array, plain: Uint32Array, most: number, hasSigns: boolean): void {
    const take = (count: number) => this.#memory.take(count);
    const { keys, threshold, plainKeys } = chooseKeys(mixed, plain, most, take);
    const isEmpty = keys.length === 0;
    if (this.#isLast(keys.length)) {
      this.end();
      // They lie in the memory of the group that ended.
      const moved = this.#memory.take(keys.length);
      moved.set(keys);
      this.#keys.push(moved);
    } else this.#keys.push(keys);
    if (!isEmpty) {
      this.#least = Math.min(this.#least, keys.length);
      this.#most = Math.max(this.#most, keys.length);
    }
    this.blocks.push({ threshold, isSingle: plainKeys === 1, hasSigns, isEmpty });
  }

  /** Ends the last group and gives the memory to the next segment of this thread. */
  finish(): void {
    this.end();
    if (spareMemory.length < maxSpare && this.#memory.sizeBytes <= maxSpareBytes) {
      spareMemory.push(this.#memory);
    }
  }

  /** Whether the group ends before a block of so many keys. */
  #isLast(keys: number): boolean {
    if (this.#keys.length === maxGroupBlocks) return true;
    if (keys === 0) return false;
    const least = Math.min(this.#least, keys);
    const most = Math.max(this.#most, keys);
    return most > least * maxSpread && most > least + spreadMin;
  }

  end(): void {
    const keys = this.#keys;
    if (this.#most > 0) {
      const from = this.blocks.length - keys.length;
      const slots = slotsFor(this.#most);
      const bits = solveNeedleFilter(keys, slots, from);
      const group = { domain: this.#domain, from, blocks: keys.length, slots };
      this.#written.push({ ...group, bits, crc: crc32(bits) });
    }
    this.#keys = [];
    this.#memory.clear();
    this.#least = Number.POSITIVE_INFINITY;
    this.#most = 0;
  }
}

/** Keys that memory is made for at a time, 1 MiB. */
const partKeys = 256 * 1024;
/** What a thread keeps for the next segment: the memory of both domains. */
const maxSpare = 2;
const maxSpareBytes = 16 * 1024 * 1024;

/** Memory for the keys of a group, used again by the next one: as garbage it was half of what a segment left behind. */
class KeyMemory {
  readonly #parts: Uint32Array[] = [];
  /** Keys taken of which part. */
  #part = 0;
  #taken = 0;

  get sizeBytes(): number {
    return this.#parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  take(count: number): Uint32Array {
    for (; ; this.#part++, this.#taken = 0) {
      this.#parts[this.#part] ??= new Uint32Array(Math.max(count, partKeys));
      const part = this.#parts[this.#part]!;
      const from = this.#taken;
      if (part.length - from < count) continue;
      this.#taken += count;
      return part.subarray(from, this.#taken);
    }
  }

  clear(): void {
    this.#part = 0;
    this.#taken = 0;
  }
}

const spareMemory: KeyMemory[] = [];

function maxKeys(bytes: number): number {
  const share = Math.floor((bytes * 8 * maxShare) / slotsPerKey);
  return Math.min(maxRibbonKeys, Math.max(fewKeys, share));
}

function sizeOf({ offsets }: BytesColumn, rows: number): number {
  return offsets[rows]! - offsets[0]!;
}
