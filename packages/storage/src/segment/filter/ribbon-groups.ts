import { crc32 } from "node:zlib";
import {
  chooseKeys,
  collectNeedleKeys,
  keysOfValues,
  maxRibbonKeys,
  slotsFor,
  solveNeedleFilter,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import {
  type FilterBlock,
  type FilterDomain,
  maxGroupBlocks,
  type WrittenGroup,
} from "./filter-table.js";

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

const noKeys = new Uint32Array(0);

/** Ribbons of one domain: holds the keys of the group that is being collected, about 10 MB. */
export class RibbonGroups {
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

  /** Adds the filter of the texts in the lines of a block, which is about so many bytes. */
  addLines({ bytes: text, offsets }: BytesColumn, rowCount: number, bytes: number): void {
    const { mixed, plain, hasSigns } = collectNeedleKeys(text, offsets, rowCount);
    this.#add(mixed, plain, bytes, hasSigns);
  }

  /** Adds the filter of values with these first keys, of a block of about so many bytes. */
  addValues(firstKeys: Uint32Array, bytes: number): void {
    this.#add(keysOfValues(firstKeys), noKeys, bytes, false);
  }

  #add(mixed: Uint32Array, plain: Uint32Array, bytes: number, hasSigns: boolean): void {
    const most = maxKeys(bytes);
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
