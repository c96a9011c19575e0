import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Line, type LinesQuery, streamOf } from "../api/lines.js";
import { Paging } from "./paging.js";

const streams = ["a", "b", "c"].map((app) => streamOf({ app }));
const base = 1_700_000_000_000_000_000n;

function lineAt(ns: bigint, stream: number, text: string): Line {
  return {
    ns: String(ns),
    text,
    stream: streams[stream]!,
    level: "info",
    metadata: {},
    parsed: {},
  };
}

/** A server that answers from a list of lines, and refuses more than its limit. */
function serverOf(lines: readonly Line[], limitMax: number) {
  return ({ startNs, endNs, limit, direction }: LinesQuery) => {
    if (limit > limitMax) return Promise.reject(new Error(`limit ${limit}`));
    const sign = direction === "backward" ? -1 : 1;
    const found = lines
      .filter(({ ns }) => BigInt(ns) >= BigInt(startNs) && BigInt(ns) < BigInt(endNs))
      .sort((a, b) => (a.ns === b.ns ? 0 : a.ns < b.ns ? -sign : sign));
    const stats = { bytes: 0, lines: 0, seconds: 0 };
    return Promise.resolve({ lines: found.slice(0, limit), stats, warnings: [] });
  };
}

function pagingOf(
  lines: readonly Line[],
  options: {
    size: number;
    direction: "forward" | "backward";
    limitMax?: number;
    heldMax?: number;
    sliceNs?: bigint | undefined;
  },
) {
  const { size, direction, limitMax = 5000, heldMax = 100_000, sliceNs } = options;
  const range = { startNs: String(base), endNs: String(base + 1000n) };
  return new Paging({
    query: "{}",
    ...range,
    size,
    limitMax,
    heldMax,
    direction,
    sliceNs,
    fetch: serverOf(lines, limitMax),
  });
}

async function allOf(paging: Paging): Promise<Line[]> {
  while (!paging.done) await paging.more();
  return Array.from({ length: paging.count }, (_, index) => paging.at(index)!);
}

const textOf = ({ ns, stream, text }: Line) => `${ns} ${stream.key} ${text}`;

describe("pages", () => {
  it("together are the whole answer, for any page size, with equal times and equal lines", async () => {
    const arbitraryLine = fc.record({
      at: fc.nat(6),
      stream: fc.nat(2),
      text: fc.constantFrom("x", "y", "z"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbitraryLine, { maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        fc.constantFrom("forward" as const, "backward" as const),
        fc.constantFrom(undefined, 1n, 2n, 3n, 62n, 5000n),
        async (rows, size, direction, sliceNs) => {
          const lines = rows.map(({ at, stream, text }) => lineAt(base + BigInt(at), stream, text));
          const found = await allOf(pagingOf(lines, { size, direction, sliceNs }));
          expect(found.map(textOf).sort()).toEqual(lines.map(textOf).sort());
          const times = found.map(({ ns }) => ns);
          const sorted = [...times].sort();
          expect(times).toEqual(direction === "backward" ? sorted.reverse() : sorted);
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each(
    [1, 7, 1000, 4999, 5000].flatMap((size) => [
      { size, direction: "forward" as const },
      { size, direction: "backward" as const },
    ]),
  )("of $size have all of 5,000 lines at one nanosecond, $direction", async (options) => {
    const crowd = Array.from({ length: 5000 }, (_, index) =>
      lineAt(base + 5n, index % 3, `line ${index}`),
    );
    const lines = [lineAt(base, 0, "first"), ...crowd, lineAt(base + 9n, 0, "last")];
    const found = await allOf(pagingOf(lines, options));
    expect(new Set(found.map(textOf)).size).toBe(5002);
    expect(found.length).toBe(5002);
  });

  it("are each there before the next is asked for, also at one nanosecond", async () => {
    const crowd = Array.from({ length: 50 }, (_, index) => lineAt(base, 0, `line ${index}`));
    const paging = pagingOf(crowd, { size: 10, direction: "backward" });
    const counts: number[] = [];
    while (!paging.done) {
      await paging.more();
      counts.push(paging.count);
    }
    expect(counts).toEqual([10, 20, 40, 50]);
  });

  it("say at which nanosecond the server has more than it gives", async () => {
    const crowd = Array.from({ length: 60 }, (_, index) => lineAt(base + 5n, 0, `line ${index}`));
    const lines = [lineAt(base, 0, "first"), ...crowd];
    const paging = pagingOf(lines, { size: 10, direction: "backward", limitMax: 50 });
    const found = await allOf(paging);
    expect(found.at(-1)?.text).toBe("first");
    expect(paging.crowded).toEqual([String(base + 5n)]);
  });

  it("that are far away are let go, and asked again", async () => {
    const lines = Array.from({ length: 300 }, (_, index) =>
      lineAt(base + BigInt(index), 0, `line ${index}`),
    );
    const paging = pagingOf(lines, { size: 20, direction: "forward", heldMax: 60 });
    while (!paging.done) await paging.more();
    expect(paging.count).toBe(300);
    expect(paging.at(0)).toBeUndefined();
    expect(paging.at(299)?.text).toBe("line 299");
    await paging.restore(0);
    expect(paging.at(0)?.text).toBe("line 0");
    expect(paging.at(299)).toBeUndefined();
  });

  it("come in slices, each twice as long as the one before", async () => {
    const asked: string[] = [];
    const paging = new Paging({
      ...{ query: "{}", startNs: "0", endNs: "160", direction: "backward" },
      ...{ size: 1000, limitMax: 5000, heldMax: 100_000, sliceNs: 10n },
      fetch: ({ startNs, endNs }) => {
        asked.push(`${startNs}-${endNs}`);
        return Promise.resolve({
          lines: [],
          stats: { bytes: 0, lines: 0, seconds: 0 },
          warnings: [],
        });
      },
    });
    await allOf(paging);
    expect(asked).toEqual(["150-160", "130-150", "90-130", "10-90", "0-10"]);
  });
});
