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
