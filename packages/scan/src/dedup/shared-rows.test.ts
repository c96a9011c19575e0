import { afterAll, describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject, type SegmentRef } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { meetingKeys } from "../pool.js";
import { SourceCache } from "../source/cache.js";
import type { Source } from "../source/source.js";
import { countReads } from "../testing/scans.js";
import { makeDirectory, makeSegment, row, type SourceRow, testDayNs } from "../testing/sources.js";
import { findShared } from "./shared-rows.js";
import { metadataText } from "./tied-rows.js";

const directory = makeDirectory();
afterAll(directory.remove);
let made = 0;

const minute = 60_000_000_000;
const segment = (rows: readonly SourceRow[]) =>
  makeSegment(directory.path, rows, { id: `s${made++}` });
/** Enough rows of one minute that segments have a digest of them. */
const manyOf = (app: string, at: number, count = 20) =>
  Array.from({ length: count }, (_, i) => row(app, at * minute + i, `line ${i}`));

function withSources<T>(refs: readonly SegmentRef[], work: (sources: Source[]) => T): T {
  const cache = new SourceCache({ maxOpenSegments: 100, maxIndexBytes: 1e9 });
  try {
    return cache.use((open) => work(refs.map((ref) => open(ref))));
  } finally {
    cache.close();
  }
}

/** Marks as they are, of few values, of the first segments only, or of none. */
type Marks = "own" | "coarse" | "some" | "none";

function withMarks(source: Source, kind: Marks, place: number): Source {
  const { marks, ...rest } = source;
  if (kind === "none" || marks === undefined || (kind === "some" && place > 1)) return rest;
  if (kind !== "coarse") return source;
  return { ...rest, marks: (block) => marks(block)?.map((mark) => mark & 3) };
}

/** The rows that are named of each segment, as keys. */
function namedOf(sources: readonly Source[], masks: ReturnType<typeof findShared>): string[][] {
  return masks.map(({ blocks, rows }, i) => {
    const source = sources[sources.length - masks.length + i]!;
    return [...blocks].flatMap((number, b) => {
      const block = source.block(number);
      const { bytes, offsets } = block.lines();
      return [...rows[b]!].map((at) => {
        const run = block.runs.rowStart.findLastIndex((start) => start <= at);
        const text = source.streams.text(block.runs.stream[run]!);
        const value = metadataText(block.metadata("trace"), at);
        const line = Buffer.from(bytes.subarray(offsets[at], offsets[at + 1]));
        return `${text} ${source.baseNs + BigInt(block.timestamps()[at]!)} ${line} ${value}`;
      });
    });
  });
}

function keyOf({ labels, ns, line, metadata = {} }: SourceRow): string {
  return `${formatLabels(labelsFromObject(labels))} ${ns} ${line} ${metadata.trace ?? ""}`;
}

const anyRow: fc.Arbitrary<SourceRow> = fc
  .record({
    app: fc.constantFrom("a", "b", "c"),
    time: fc.integer({ min: 0, max: 12 }),
    line: fc.constantFrom("", "x", "y"),
    trace: fc.constantFrom("", "1", "2"),
    day: fc.constantFrom(0, 0, 0, 1),
  })
  .map(({ app, time, line, trace }) => row(app, time, line, { trace }));

const anyMarks = fc.constantFrom<Marks>("own", "coarse", "some", "none");

describe("findShared", () => {
  it("agrees with a set of rows, whichever part is asked for", () => {
    const some = fc.array(anyRow, { minLength: 1, maxLength: 25, size: "max" });
    const many = fc
      .tuple(fc.constantFrom("a", "b"), fc.nat(2), fc.constantFrom(19, 20, 40))
      .map(([app, at, count]) => manyOf(app, at, count));
    const rows = fc.tuple(some, fc.array(many, { maxLength: 3 })).map((all) => all.flat(2));
    const lists = fc.array(rows, { minLength: 1, maxLength: 7 });
    fc.assert(
      fc.property(lists, fc.nat(6), fc.constantFrom(1, 2), anyMarks, (all, from, count, kind) => {
        const wantedFrom = Math.min(from, all.length - 1);
        const refs = all.map(segment);
        const parts = withSources(refs, (opened) => {
          const sources = opened.map((source, place) => withMarks(source, kind, place));
          return Array.from({ length: count }, (_, index) => {
            const part = { index, count };
            return namedOf(sources, findShared(sources, { check: () => {}, wantedFrom, part }));
          });
        });
        const seen = new Set<string>();
        const want = all.map((own) => {
          // A segment holds each row once.
          const keys = [...new Set(own.map(keyOf))];
          const named = keys.filter((key) => seen.has(key));
          for (const key of keys) seen.add(key);
          return named.sort();
        });
        const got = parts[0]!.map((_, i) => parts.flatMap((named) => named[i]!).sort());
        expect(got).toEqual(want.slice(wantedFrom));
      }),
      { numRuns: testRuns(120) },
    );
  });

  const read = (lists: readonly SourceRow[][], marks: Marks = "own") =>
    withSources(lists.map(segment), (sources) => {
      const counted = sources.map((source, place) => countReads(withMarks(source, marks, place)));
      const masks = findShared(
        counted.map(({ source }) => source),
        { check: () => {} },
      );
      return {
        named: masks.map(({ rows }) => rows.reduce((sum, { length }) => sum + length, 0)),
        times: counted.flatMap(({ times }) => times.length),
        lines: counted.flatMap(({ lines }) => lines.length),
      };
    });

  it("says by digests that are equal that all rows are, without a look at any", () => {
    const both = [...manyOf("a", 0), ...manyOf("a", 1), ...manyOf("b", 0)];
    expect(read([both, both, both])).toEqual({
      ...{ named: [0, 60, 60], times: [0, 0, 0], lines: [0, 0, 0] },
    });
  });

  it("compares the minutes that differ with one of each digest", () => {
    const other = [...manyOf("a", 0), row("a", 3, "another")];
    expect(read([manyOf("a", 0), other, manyOf("a", 0), other])).toEqual({
      ...{ named: [0, 20, 20, 21], times: [1, 1, 0, 0], lines: [1, 1, 0, 0] },
    });
  });

  it("reads no line where no times are equal, and no time where no stream is shared", () => {
    const even = [0, 2, 4].map((time) => row("a", time, "x"));
    const odd = [1, 3, 5].map((time) => row("a", time, "x"));
    const others = [0, 2, 4].map((time) => row("b", time, "x"));
    expect(read([even, odd, others], "none")).toEqual({
      ...{ named: [0, 0, 0], times: [1, 1, 0], lines: [0, 0, 0] },
    });
  });

  it("reads nothing where marks differ, and the blocks of rows whose marks are equal", () => {
    const lists = ["x", "y", "x"].map((line) => [row("a", 0, line), row("a", 5, `${line}${line}`)]);
    expect(read(lists.slice(0, 2))).toEqual({ named: [0, 0], times: [0, 0], lines: [0, 0] });
    expect(read(lists)).toEqual({ named: [0, 0, 2], times: [1, 0, 1], lines: [1, 0, 1] });
  });

  it("ends when the query was cancelled", () => {
    const check = () => {
      throw new Error("cancelled");
    };
    const both = [segment(manyOf("a", 0, 3)), segment(manyOf("a", 0, 3))];
    expect(() => withSources(both, (sources) => findShared(sources, { check }))).toThrow(
      "cancelled",
    );
  });
});

describe("meetingKeys", () => {
  const refs = (spans: readonly (readonly [string, number, number])[]): SegmentRef[] =>
    spans.map(([id, from, to]) => ({
      ...{ kind: "segment", id, tenant: "t", sizeBytes: 1, location: { kind: "object", key: id } },
      ...{ minNs: testDayNs + BigInt(from), maxNs: testDayNs + BigInt(to) },
    }));
  const [a, b, c, d] = [
    ["a", 0, 10],
    ["b", 5, 20],
    ["c", 11, 30],
    ["d", 25, 40],
  ] as const;
  const keyIn = (id: string, ...spans: (readonly [string, number, number])[]) =>
    meetingKeys(refs(spans))[spans.findIndex(([one]) => one === id)];

  it("are the same with the same earlier ones that meet, and others with others", () => {
    expect(keyIn("c", a, b, c, d)).toBe(keyIn("c", b, c));
    expect(keyIn("d", a, b, c, d)).toBe(keyIn("d", c, d));
    expect(keyIn("c", a, b, c)).not.toBe(keyIn("c", a, c));
    expect(keyIn("b", a, b)).not.toBe(keyIn("b", b));
  });
});
