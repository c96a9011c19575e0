import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BlockRuns, type RunColumns } from "./runs.js";

interface Run {
  readonly stream: number;
  readonly minTime: number;
  readonly maxTime: number;
}

/** Blocks of runs whose streams ascend over all blocks. */
const blocks = fc
  .array(fc.array(fc.tuple(fc.nat(2), fc.nat(20), fc.nat(5)), { minLength: 1, maxLength: 4 }), {
    maxLength: 8,
  })
  .map((steps) => {
    let stream = 0;
    return steps.map((runs) =>
      runs.map(([step, minTime, span], i): Run => {
        stream += i === 0 ? step : step + 1;
        return { stream, minTime, maxTime: minTime + span };
      }),
    );
  });

function columnsOf(runs: readonly (readonly Run[])[]): RunColumns {
  const first = [0];
  for (const { length } of runs) first.push(first.at(-1)! + length);
  const all = runs.flat();
  return {
    first: Uint32Array.from(first),
    stream: Uint32Array.from(all, ({ stream }) => stream),
    minTime: Float64Array.from(all, ({ minTime }) => minTime),
    maxTime: Float64Array.from(all, ({ maxTime }) => maxTime),
  } as RunColumns;
}

describe("blocksOf", () => {
  it("finds what a look at every run finds", () => {
    const selected = fc
      .uniqueArray(fc.nat(40), { maxLength: 10 })
      .map((list) => list.sort((a, b) => a - b));
    fc.assert(
      fc.property(
        blocks,
        selected,
        fc.nat(25),
        fc.nat(25),
        fc.nat(8),
        fc.nat(8),
        (all, streams, from, to, first, end) => {
          const within = { from: Math.min(first, all.length), to: Math.min(end, all.length) };
          const numbers = (keeps: (run: Run, block: number) => boolean) =>
            all.flatMap((runs, block) =>
              runs.some((run) => streams.includes(run.stream) && keeps(run, block)) ? [block] : [],
            );
          const runs = new BlockRuns(columnsOf(all));
          expect([...runs.blocksOf(Uint32Array.from(streams))]).toEqual(numbers(() => true));
          expect([
            ...runs.blocksOf(Uint32Array.from(streams), { from, to, blocks: within }),
          ]).toEqual(
            numbers(
              ({ minTime, maxTime }, block) =>
                maxTime >= from && minTime < to && block >= within.from && block < within.to,
            ),
          );
        },
      ),
    );
  });
});
