import { hashRows, keysOfValues, mix } from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import { runningSum } from "../../bytes.js";
import type { SortedBlock } from "../layout.js";

/** The metadata of a block: columns by name, and the pairs of the other names. */
type BlockValues = Pick<SortedBlock, "metadata" | "more" | "rowCount">;

/**
 * The first key of each distinct value of a name; an empty value is none. `moreNames` are those of the pairs. The keys are
 * valid until the next call.
 */
export function firstKeys(
  { metadata, more, rowCount }: BlockValues,
  moreNames: readonly string[],
): Uint32Array {
  first.clear();
  for (const [name, column] of metadata) {
    const seed = seedOf(name);
    addValues(column, rowCount, () => seed);
  }
  if (more.names.length > 0) {
    const seeds = new Map<number, number>();
    for (const name of more.used) seeds.set(name, seedOf(moreNames[name]!));
    const column = { bytes: more.values, offsets: runningSum(more.valueLengths) };
    addValues(column, more.names.length, (pair) => seeds.get(more.names[pair]!)!);
  }
  return first.keys.subarray(0, first.size);
}

/** Distinct numbers in the order in which they were added; used again for each block. */
class DistinctKeys {
  size = 0;
  keys = new Uint32Array(512);
  /** At most half full; 0 is no key. */
  #slots = new Uint32Array(1024);
  #hasZero = false;

  clear(): void {
    this.size = 0;
    this.#hasZero = false;
    if (this.#slots.length > maxKeptSlots) {
      this.keys = new Uint32Array(512);
      this.#slots = new Uint32Array(1024);
    } else this.#slots.fill(0);
  }

  add(key: number): void {
    if (key === 0) {
      if (this.#hasZero) return;
      this.#hasZero = true;
    } else {
      const slots = this.#slots;
      const mask = slots.length - 1;
      let slot = key & mask;
      while (slots[slot] !== 0) {
        if (slots[slot] === key) return;
        slot = (slot + 1) & mask;
      }
      slots[slot] = key;
    }
    this.keys[this.size++] = key;
    if (this.size === this.keys.length) this.#grow();
  }

  #grow(): void {
    const keys = new Uint32Array(this.keys.length * 4);
    keys.set(this.keys);
    this.keys = keys;
    const slots = new Uint32Array(keys.length * 2);
    const mask = slots.length - 1;
    for (let i = 0; i < this.size; i++) {
      let slot = keys[i]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = keys[i]!;
    }
    this.#slots = slots;
  }
}

/** A table above 128 KiB is not kept: clearing it for blocks with few values would take longer than filling it. */
const maxKeptSlots = 32 * 1024;

const first = new DistinctKeys();
let high = new Uint32Array(0);
let low = new Uint32Array(0);

function addValues(
  { bytes, offsets }: BytesColumn,
  count: number,
  seedAt: (i: number) => number,
): void {
  if (high.length < count) {
    high = new Uint32Array(count);
    low = new Uint32Array(count);
  }
  hashRows(bytes, offsets, count, high, low);
  let lastSeed = 0;
  for (let i = 0; i < count; i++) {
    if (offsets[i] === offsets[i + 1]) continue;
    const seed = seedAt(i);
    if (i > 0 && seed === lastSeed && low[i] === low[i - 1] && high[i] === high[i - 1]) continue;
    lastSeed = seed;
    first.add(firstKey(seed, high[i]!, low[i]!));
  }
}

/** The keys of one value of a name. */
export function valueKeys(name: string, value: Uint8Array): readonly number[] {
  const { high, low } = hashOf(value);
  return [...keysOfValues(Uint32Array.of(firstKey(seedOf(name), high, low)))];
}

function seedOf(name: string): number {
  const { high, low } = hashOf(Buffer.from(name, "utf8"));
  return mix(high ^ mix(low));
}

function hashOf(bytes: Uint8Array): { high: number; low: number } {
  const high = new Uint32Array(1);
  const low = new Uint32Array(1);
  hashRows(bytes, Uint32Array.of(0, bytes.length), 1, high, low);
  return { high: high[0]!, low: low[0]! };
}

function firstKey(seed: number, high: number, low: number): number {
  return mix(mix(low ^ seed) ^ high);
}
