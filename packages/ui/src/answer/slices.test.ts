import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Series } from "../api/lines.js";
import { addStats, joinSeries, noStats, patiently, rangeSlices, sliceOverBytes } from "./slices.js";

const whole = { query: "q", start: "1700000000000000000", step: 15 };
const stepNs = 15_000_000_000n;

describe("slices of a range query", () => {
  it("have all points of the whole, each once, and begin with the newest", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.bigInt(0n, stepNs - 1n), (points, rest) => {
        const start = BigInt(whole.start);
        const end = String(start + stepNs * BigInt(points - 1) + rest);
        const slices = rangeSlices({ ...whole, end });
        const times = slices.flatMap((one) => {
          const found: bigint[] = [];
          for (let at = BigInt(one.end); at >= BigInt(one.start); at -= stepNs) found.push(at);
          return found;
        });
        const wanted = Array.from({ length: points }, (_, at) => start + stepNs * BigInt(at));
        expect(times).toEqual(wanted.reverse());
        expect(slices.length).toBe(Math.min(4, points));
      }),
    );
  });

  it("are joined series by series, whatever the order of the labels", () => {
    const early: Series[] = [{ labels: { a: "1", b: "2" }, points: [[1, 10]] }];
    const late: Series[] = [
      { labels: { b: "2", a: "1" }, points: [[2, 20]] },
      { labels: { a: "3" }, points: [[2, 5]] },
    ];
    expect(joinSeries(early, late)).toEqual([
      {
        labels: { a: "1", b: "2" },
        points: [
          [1, 10],
          [2, 20],
        ],
      },
      { labels: { a: "3" }, points: [[2, 5]] },
    ]);
  });

  it("have statistics that add up", () => {
    const skald = { phases: { scan: 2 }, blocks: { read: 3 }, bytesToRead: 7 };
    const one = { bytes: 1, lines: 2, seconds: 3, skald };
    expect(addStats(addStats(noStats, one), one)).toEqual({
      ...{ bytes: 2, lines: 4, seconds: 6 },
      skald: { phases: { scan: 4 }, blocks: { read: 6 }, bytesToRead: 14 },
    });
  });
});

describe("a query that takes long", () => {
  const never = (signal: AbortSignal) =>
    new Promise<string>((_, reject) => {
      const end = () => reject(new DOMException("", "AbortError"));
      signal.addEventListener("abort", end);
    });
  const inSlices = (bytes: number) => Promise.resolve(`slices of ${bytes}`);
  const { signal } = new AbortController();

  it("and reads much is ended, and asked in slices", async () => {
    const much = sliceOverBytes + 1;
    const bytesOf = () => Promise.resolve(much);
    const query = { atOnce: never, inSlices, bytesOf, signal, patienceMs: 0 };
    expect(await patiently(query)).toBe(`slices of ${much}`);
  });

  it("and reads little goes on", async () => {
    let answer: (text: string) => void = () => undefined;
    const atOnce = () =>
      new Promise<string>((resolve) => {
        answer = resolve;
      });
    const bytesOf = () => {
      queueMicrotask(() => answer("whole"));
      return Promise.resolve(10);
    };
    const query = { atOnce, inSlices, bytesOf, signal, patienceMs: 0 };
    expect(await patiently(query)).toBe("whole");
  });

  it("asks nothing about a query that has answered", async () => {
    const bytesOf = () => Promise.reject(new Error("asked"));
    const atOnce = () => Promise.resolve("fast");
    expect(await patiently({ atOnce, inSlices, bytesOf, signal })).toBe("fast");
  });

  it("ends when somebody cancels, without slices", async () => {
    const cancelled = new AbortController();
    const bytesOf = () => Promise.resolve(sliceOverBytes * 2);
    const found = patiently({ atOnce: never, inSlices, bytesOf, signal: cancelled.signal });
    cancelled.abort();
    await expect(found).rejects.toThrow(DOMException);
  });
});
