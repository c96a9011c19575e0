import { crc32 } from "node:zlib";
import {
  type BitmapChoice,
  chooseKeys,
  collectNeedleKeys,
  groupNeedleBits,
  keysOfValues,
  type MarkedKeys,
  markNeedleKeys,
  markValueKeys,
  maxBitmapSlots,
  maxRibbonKeys,
  slotsFor,
  solveNeedleFilter,
  windowBytes,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import type { SortedBlock } from "../layout.js";
import {
  type FilterBlock,
  type FilterDomain,
  type FilterKind,
  filterDomains,
  maxGroupBlocks,
  type WrittenGroup,
} from "./filter-table.js";
import { firstKeys } from "./value-keys.js";

/**
 * Makes the filters of the blocks of a segment: of their lines and of their metadata, in groups of blocks that follow each other.
 * Holds what one group is made from, and the filters of the segment (about 1.7 % of its lines, as bitmaps 2.3 %).
 */
export class FilterWriter {
  readonly kind: FilterKind;
  readonly groups: WrittenGroup[] = [];
  readonly #lines: FilterGroups;
  readonly #metadata: FilterGroups;
  readonly #moreNames: readonly string[];

  /** `moreNames` are the names of the pairs of metadata that blocks bring. */
  constructor(kind: FilterKind, moreNames: readonly string[]) {
    const Groups = kind === "ribbon" ? RibbonGroups : BitmapGroups;
    this.kind = kind;
    this.#lines = new Groups(filterDomains.lines, this.groups);
    this.#metadata = new Groups(filterDomains.metadata, this.groups);
    this.#moreNames = moreNames;
  }

  get blocks(): Readonly<Record<FilterDomain, readonly FilterBlock[]>> {
    return { 0: this.#lines.blocks, 1: this.#metadata.blocks };
  }

  add(block: SortedBlock): void {
    const { lines, rowCount } = block;
    this.#lines.addLines(lines, rowCount, sizeOf(lines, rowCount));
    this.#metadata.addValues(firstKeys(block, this.#moreNames), bytesOf(block));
  }

  /** Ends the last groups; nothing can be added any more. */
  finish(): void {
    this.#lines.finish();
    this.#metadata.finish();
  }
}

/** The filters of one domain; `bytes` is the rough size of the block that is added. */
interface FilterGroups {
  readonly blocks: readonly FilterBlock[];
  /** Adds the filter of the texts in lines. */
  addLines(lines: BytesColumn, rowCount: number, bytes: number): void;
  /** Adds the filter of values with these first keys. */
  addValues(firstKeys: Uint32Array, bytes: number): void;
  finish(): void;
}

/** Bytes of lines and metadata. */
function bytesOf({ lines, metadata, more, rowCount }: SortedBlock): number {
  let bytes = sizeOf(lines, rowCount) + more.values.length;
  for (const column of metadata.values()) bytes += sizeOf(column, rowCount);
  return bytes;
}

function sizeOf({ offsets }: BytesColumn, rows: number): number {
  return offsets[rows]! - offsets[0]!;
}

/** A filter takes at most this part of the bytes that it covers: a block of random letters has too many keys. */
const maxShare = 0.03;
/** This many slots, 176 bytes, are never too many. */
const fewSlots = 1408;
/** Slots a key of the block that begins a group: a little less than half of them get a bit. */
const bitmapSlotsPerKey = 1.5;
/** A block joins a group where this part of its slots has a bit. More lets absent keys pass, less takes room. */
const leastFull = 0.4;
const mostFull = 0.6;
/** Groups of so few slots take what would leave more of them empty. */
const smallSlots = 512;
/** Where a filter must not grow, it is left as full as this; and when keys have to go, these are left, for each slot. */
const fullest = 0.65;
const thinnedKeys = 0.75;
/** A group may have somewhat more slots than one of its blocks would take alone. */
const mostSpread = 1.15;
/** Slots are a multiple of this. */
const slotUnit = 64;

/** Marks the keys of a block: with other slots, or with fewer of its keys, once more. */
type MarkBlock = (choice: BitmapChoice) => MarkedBlock;

/** The bits of a block, and whether its lines have signs that fold to letters. */
type MarkedBlock = MarkedKeys & { readonly hasSigns: boolean };

/** Bitmaps of one domain. It has the bits of the group that is being collected in memory, about half a MB. */
class BitmapGroups {
  readonly blocks: FilterBlock[] = [];
  readonly #domain: FilterDomain;
  readonly #written: WrittenGroup[];
  #maps: Uint8Array[] = [];
  /** Slots of the group; 0 while none of its blocks has a key. */
  #slots = 0;
  /** Slots of the last group. */
  #lastSlots = 0;

  constructor(domain: FilterDomain, written: WrittenGroup[]) {
    this.#domain = domain;
    this.#written = written;
  }

  addLines({ bytes: text, offsets }: BytesColumn, rowCount: number, bytes: number): void {
    // No text that has a key stands in lines without a window, in whatever case.
    if (!hasWindow(offsets, rowCount)) this.#addEmpty();
    else this.#add((choice) => markNeedleKeys(text, offsets, rowCount, choice), bytes);
  }

  addValues(firstKeys: Uint32Array, bytes: number): void {
    if (firstKeys.length === 0) this.#addEmpty();
    else {
      const mark: MarkBlock = (choice) => ({
        ...markValueKeys(firstKeys, firstKeys.length, choice),
        hasSigns: false,
      });
      this.#add(mark, bytes);
    }
  }

  #add(mark: MarkBlock, bytes: number): void {
    const chosen = chooseBits(mark, this.#slots || this.#lastSlots, maxSlots(bytes));
    const { slots, plainKeys, threshold, hasSigns, bits } = chosen;
    const isOther = this.#slots > 0 && this.#slots !== slots;
    if (isOther || this.#maps.length === maxGroupBlocks) this.finish();
    this.#slots = slots;
    this.#maps.push(bits);
    this.blocks.push({ threshold, isSingle: plainKeys === 1, hasSigns, isEmpty: false });
  }

  /** Adds a block that has no key at all. */
  #addEmpty(): void {
    if (this.#maps.length === maxGroupBlocks) this.finish();
    this.#maps.push(noBits);
    this.blocks.push({ threshold: 0, isSingle: false, hasSigns: false, isEmpty: true });
  }

  /** Ends the last group. */
  finish(): void {
    const maps = this.#maps;
    if (this.#slots > 0) {
      const from = this.blocks.length - maps.length;
      const bits = groupNeedleBits(maps, this.#slots);
      const group = { domain: this.#domain, from, blocks: maps.length, slots: this.#slots };
      this.#written.push({ ...group, bits, crc: crc32(bits) });
      this.#lastSlots = this.#slots;
    }
    this.#maps = [];
    this.#slots = 0;
  }
}

const noBits = new Uint8Array(0);

function hasWindow(offsets: Uint32Array, rows: number): boolean {
  for (let row = 0; row < rows; row++) {
    if (offsets[row + 1]! - offsets[row]! >= windowBytes) return true;
  }
  return false;
}

/** Marks with the slots of the group when they suit the block, else with a number that does. */
function chooseBits(mark: MarkBlock, groupSlots: number, most: number): ChosenBits {
  for (let slots = groupSlots || most; ; ) {
    const choice: BitmapChoice = { slots, plainKeys: 3, threshold: 0 };
    const marked = mark(choice);
    const full = marked.count / slots;
    const isMuch = slots > most * mostSpread;
    const limit = slots < most ? mostFull : fullest;
    const isEnough = full >= leastFull || slots <= smallSlots;
    if (isEnough && full <= limit && !isMuch) return { ...choice, ...marked };
    const wanted = Math.min(most, bitmapSlotsFor(keysOf(marked.count, slots)));
    if (wanted === slots) return full <= fullest ? { ...choice, ...marked } : thinned(mark, slots);
    slots = wanted;
  }
}

/** Leaves keys out: first the additional ones, then by their lower bits, as many as there are too many. */
function thinned(mark: MarkBlock, slots: number): ChosenBits {
  let choice: BitmapChoice = { slots, plainKeys: 1, threshold: 0 };
  let marked = mark(choice);
  for (let threshold = 65536; marked.count > slots * fullest && threshold > 1; ) {
    const share = (thinnedKeys * slots) / keysOf(marked.count, slots);
    threshold = Math.max(1, Math.floor(threshold * share));
    choice = { ...choice, threshold };
    marked = mark(choice);
  }
  return { ...choice, ...marked };
}

type ChosenBits = BitmapChoice & MarkedBlock;

/** About how many distinct keys set `count` bits. */
function keysOf(count: number, slots: number): number {
  return slots * Math.log(slots / Math.max(slots - count, 0.5));
}

function bitmapSlotsFor(keys: number): number {
  return Math.max(1, Math.ceil((keys * bitmapSlotsPerKey) / slotUnit)) * slotUnit;
}

function maxSlots(bytes: number): number {
  const share = Math.floor((bytes * 8 * maxShare) / slotUnit) * slotUnit;
  return Math.min(maxBitmapSlots, Math.max(fewSlots, share));
}

/** This many keys, 136 bytes, are never too many. */
const fewKeys = 1000;
/** Slots of a key, for the share that a filter may take. */
const ribbonSlotsPerKey = 1.06;
/** All filters of a group are as large as its largest, so one that would waste more begins another group. */
const maxSpread = 1.15;
/** A difference of up to this many keys does not matter. */
const spreadMin = 64;

const noKeys = new Uint32Array(0);

/** Ribbons of one domain. It has the keys of the group that is being collected in memory, about 10 MB. */
class RibbonGroups {
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

  addLines({ bytes: text, offsets }: BytesColumn, rowCount: number, bytes: number): void {
    const { mixed, plain, hasSigns } = collectNeedleKeys(text, offsets, rowCount);
    this.#add(mixed, plain, bytes, hasSigns);
  }

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
      // The keys are in the memory of the group that just ended.
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

  /** Whether the group ends before a block with this number of keys. */
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
  /** The current part, and the keys taken of it. */
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
  const share = Math.floor((bytes * 8 * maxShare) / ribbonSlotsPerKey);
  return Math.min(maxRibbonKeys, Math.max(fewKeys, share));
}
