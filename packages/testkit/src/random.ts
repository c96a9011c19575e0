/** Integers from 0 below n. */
export type Random = (n: number) => number;

/** A small seeded generator (mulberry32): the same numbers on every machine. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

/** The seed of all random tests of this run: the variable `SEED`, which jest.config.mjs makes a number of. */
export function testSeed(): number {
  const seed = Number(process.env.SEED ?? 1);
  if (!Number.isInteger(seed)) throw new Error(`SEED is not an integer: ${process.env.SEED}`);
  return seed;
}

/** How many cases a random test tries: the variable `RUNS`, else what is usual for it. */
export function testRuns(usual: number): number {
  return Number(process.env.RUNS ?? usual);
}

/** A copy of the bytes with one to four faults: flipped, overwritten, cut, spliced, doubled, swapped or swollen. */
export function mutate(bytes: Uint8Array, random: Random): Uint8Array {
  let result = Uint8Array.from(bytes);
  for (let faults = 1 + random(4); faults > 0 && result.length > 0; faults--) {
    result = mutations[random(mutations.length)]!(result, random);
  }
  return result;
}

type Mutation = (bytes: Uint8Array<ArrayBuffer>, random: Random) => Uint8Array<ArrayBuffer>;

const spiteful = [
  0x00, 0x01, 0x7f, 0x80, 0xff, 0x22, 0x5c, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d, 0x3a, 0x75,
];

const mutations: readonly Mutation[] = [
  (bytes, random) => {
    bytes[random(bytes.length)]! ^= 1 << random(8);
    return bytes;
  },
  (bytes, random) => {
    bytes[random(bytes.length)] =
      random(2) === 0 ? random(256) : spiteful[random(spiteful.length)]!;
    return bytes;
  },
  (bytes, random) => bytes.slice(0, random(bytes.length)),
  (bytes, random) => {
    const from = random(bytes.length);
    return splice(bytes, from, Math.min(bytes.length, from + 1 + random(16)), new Uint8Array(0));
  },
  (bytes, random) => {
    const from = random(bytes.length);
    const part = bytes.slice(from, from + 1 + random(48));
    const to = random(bytes.length);
    return splice(bytes, to, to, part);
  },
  (bytes, random) => {
    const from = random(bytes.length);
    const part = bytes.slice(from, from + 1 + random(16));
    const to = random(bytes.length);
    return splice(bytes, to, Math.min(bytes.length, to + part.length), part);
  },
  // A length that grows: the byte becomes the first of a longer varint.
  (bytes, random) => {
    const at = random(bytes.length);
    const more = Array.from({ length: 1 + random(9) }, () => 0x80 | random(128));
    const longer = Uint8Array.of(bytes[at]! | 0x80, ...more, random(128));
    return splice(bytes, at, at + 1, longer);
  },
];

function splice(
  bytes: Uint8Array,
  from: number,
  to: number,
  part: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(bytes.length - (to - from) + part.length);
  result.set(bytes.subarray(0, from));
  result.set(part, from);
  result.set(bytes.subarray(to), from + part.length);
  return result;
}
