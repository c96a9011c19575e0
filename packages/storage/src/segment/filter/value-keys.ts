import { hashRows, mix, nextKey } from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import type { SortedBlock } from "../write/layout.js";

/** Keys of one value: an absent one passes the filter with a chance of about 1 in 256. */
const keysPerValue = 8;

/** The metadata of a block: columns by name, and the pairs of the other names. */
export type BlockValues = Pick<SortedBlock, "metadata" | "more" | "rowCount">;

/** The keys of all values, each distinct one of a name once; an empty value is none. `moreNames` are those of the pairs. */
export function valueKeys(
  { metadata, more, rowCount }: BlockValues,
  moreNames: readonly string[],
): Uint32Array {
  const first = new Set<number>();
  for (const [name, column] of metadata) {
    const seed = seedOf(name);
    addValues(first, column, rowCount, () => seed);
  }
  if (more.names.length > 0) {
    const seeds = new Map<number, number>();
    for (const name of more.used) seeds.set(name, seedOf(moreNames[name]!));
    const column = { bytes: more.values, offsets: offsetsOf(more.valueLengths) };
    addValues(first, column, more.names.length, (pair) => seeds.get(more.names[pair]!)!);
  }
  const keys = new Uint32Array(first.size * keysPerValue);
  let at = 0;
  for (const key of first) for (const one of chain(key)) keys[at++] = one;
  return keys;
}

function addValues(
  keys: Set<number>,
  { bytes, offsets }: BytesColumn,
  count: number,
  seedAt: (i: number) => number,
): void {
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  hashRows(bytes, offsets, count, high, low);
  let lastSeed = 0;
  for (let i = 0; i < count; i++) {
    if (offsets[i] === offsets[i + 1]) continue;
    const seed = seedAt(i);
    if (i > 0 && seed === lastSeed && low[i] === low[i - 1] && high[i] === high[i - 1]) continue;
    lastSeed = seed;
    keys.add(firstKey(seed, high[i]!, low[i]!));
  }
}

function offsetsOf(lengths: Uint32Array): Uint32Array {
  const offsets = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) offsets[i + 1] = offsets[i]! + lengths[i]!;
  return offsets;
}

/** The keys of one value of a name. */
export function keysOfValue(name: string, value: Uint8Array): readonly number[] {
  const { high, low } = hashOf(value);
  return chain(firstKey(seedOf(name), high, low));
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

function chain(first: number): readonly number[] {
  const keys = [first];
  while (keys.length < keysPerValue) keys.push(nextKey(keys.at(-1)!));
  return keys;
}
