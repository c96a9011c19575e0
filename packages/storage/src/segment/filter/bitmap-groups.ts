import { crc32 } from "node:zlib";
import {
  type BitmapChoice,
  groupNeedleBits,
  type MarkedKeys,
  markNeedleKeys,
  markValueKeys,
  maxBitmapSlots,
  windowBytes,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import {
  type FilterBlock,
  type FilterDomain,
  maxGroupBlocks,
  type WrittenGroup,
} from "./filter-table.js";

/** A filter takes at most this part of the bytes that it is about. */
const maxShare = 0.03;
/** So many slots, 176 bytes, are never too many. */
const fewSlots = 1408;
/** Slots a key of the block that begins a group: a little less than half of them get a bit. */
const slotsPerKey = 1.5;
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

/** Bitmaps of one domain: holds the bits of the group that is being collected, about half a MB. */
export class BitmapGroups {
  readonly blocks: FilterBlock[] = [];
  readonly #domain: FilterDomain;
  readonly #written: WrittenGroup[];
  #maps: Uint8Array[] = [];
  /** Of the group; 0 while none of its blocks has a key. */
  #slots = 0;
  /** Of the last group. */
  #lastSlots = 0;

  constructor(domain: FilterDomain, written: WrittenGroup[]) {
    this.#domain = domain;
    this.#written = written;
  }

  /** Adds the filter of the texts in the lines of a block, which is about so many bytes. */
  addLines({ bytes: text, offsets }: BytesColumn, rowCount: number, bytes: number): void {
    // No text that has a key stands in lines without a window, in whatever case.
    if (!hasWindow(offsets, rowCount)) this.#addEmpty();
    else this.#add((choice) => markNeedleKeys(text, offsets, rowCount, choice), bytes);
  }

  /** Adds the filter of values with these first keys, of a block of about so many bytes. */
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

/** Marks with the slots of the group where they suit the block, else with as many as do. */
function chooseBits(mark: MarkBlock, groupSlots: number, most: number): ChosenBits {
  for (let slots = groupSlots || most; ; ) {
    const choice: BitmapChoice = { slots, plainKeys: 3, threshold: 0 };
    const marked = mark(choice);
    const full = marked.count / slots;
    const isMuch = slots > most * mostSpread;
    const limit = slots < most ? mostFull : fullest;
    const isEnough = full >= leastFull || slots <= smallSlots;
    if (isEnough && full <= limit && !isMuch) return { ...choice, ...marked };
    const wanted = Math.min(most, slotsFor(keysOf(marked.count, slots)));
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

/** How many distinct keys set so many bits, about. */
function keysOf(count: number, slots: number): number {
  return slots * Math.log(slots / Math.max(slots - count, 0.5));
}

function slotsFor(keys: number): number {
  return Math.max(1, Math.ceil((keys * slotsPerKey) / slotUnit)) * slotUnit;
}

function maxSlots(bytes: number): number {
  const share = Math.floor((bytes * 8 * maxShare) / slotUnit) * slotUnit;
  return Math.min(maxBitmapSlots, Math.max(fewSlots, share));
}
