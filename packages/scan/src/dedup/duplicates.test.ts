import { afterAll, describe, expect, it } from "@jest/globals";
import type { RowMask } from "@skald/contracts";
import { dayNs } from "@skald/model";
import { type LocalRef, shareTexts } from "@skald/storage";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { SourceCache } from "../source/cache.js";
import { countReads } from "../testing/scans.js";
import {
  makeDirectory,
  makeHead,
  makeSegment,
  row,
  type SourceRow,
  testDayNs,
} from "../testing/sources.js";
import { findShared } from "./shared-rows.js";
import { metadataText } from "./tied-rows.js";

const directory = makeDirectory();
afterAll(directory.remove);
let made = 0;

type Make = (rows: readonly SourceRow[]) => LocalRef;
const segment: Make = (rows) => makeSegment(directory.path, rows, { id: `s${made++}` });
const head: Make = (rows) => makeHead(rows, { id: `h${made++}`, rowsPerBlock: 3 });

/** The rows of `newer` that are named, as `app time line metadata`. */
function find(
  older: LocalRef,
  newer: LocalRef,
  span?: [number, number],
  check = () => {},
): string[] {
  const cache = new SourceCache({ maxOpenSegments: 2, maxIndexBytes: 1e9 });
  const limits = span && {
    fromNs: testDayNs + BigInt(span[0]),
    toNs: testDayNs + BigInt(span[1]) + 1n,
  };
  const found = cache.use((open) => {
    const [mask] = findShared([open(older), open(newer)], { check, range: limits, wantedFrom: 1 });
    return describeRows(open(newer), mask!);
  });
  cache.close();
  return found;
}

function describeRows(
  source: ReturnType<Parameters<Parameters<SourceCache["use"]>[0]>[0]>,
  { blocks, rows }: RowMask,
): string[] {
  const texts: string[] = [];
  blocks.forEach((number, i) => {
    const block = source.block(number);
    for (const at of rows[i]!) {
      const run = block.runs.rowStart.findLastIndex((start) => start <= at);
      const { bytes, offsets } = block.lines();
      const line = Buffer.from(bytes.subarray(offsets[at], offsets[at + 1])).toString();
      const value = metadataText(block.metadata("trace"), at);
      texts.push(
        `${source.streams.text(block.runs.stream[run]!)} ${block.timestamps()[at]} ${line} ${value}`.trim(),
      );
    }
  });
  return texts.sort();
}

const base = [row("a", 10, "one"), row("a", 20, "two", { trace: "t" }), row("b", 10, "one")];
const kinds: [string, Make, Make][] = [
  ["two segments", segment, segment],
  ["a segment and a head", segment, head],
  ["two heads", head, head],
];

describe.each(kinds)("findShared in %s", (_name, makeOlder, makeNewer) => {
  it.each<[string, SourceRow[], string[]]>([
    ["the same rows", base, ['{app="a"} 10 one', '{app="a"} 20 two t', '{app="b"} 10 one']],
    ["another line", [row("a", 10, "two")], []],
    ["a line that begins the same", [row("a", 10, "on"), row("a", 10, "one ")], []],
    ["another time", [row("a", 11, "one"), row("a", 9, "one")], []],
    ["another stream", [row("c", 10, "one")], []],
    ["other metadata", [row("a", 20, "two", { trace: "u" })], []],
    ["metadata of another name", [row("a", 20, "two", { span: "t" })], []],
    ["no metadata where there was some", [row("a", 20, "two")], []],
    ["metadata where there was none", [row("a", 10, "one", { trace: "t" })], []],
    ["empty metadata, which is none", [row("a", 10, "one", { trace: "" })], ['{app="a"} 10 one']],
    [
      "one among others of its time",
      [row("a", 10, "x"), row("a", 10, "one"), row("a", 10, "y")],
      ['{app="a"} 10 one'],
    ],
    [
      "rows out of order",
      [row("b", 99, "z"), row("a", 20, "two", { trace: "t" }), row("b", 10, "one")],
      ['{app="a"} 20 two t', '{app="b"} 10 one'],
    ],
  ])("%s", (_case, rows, want) => {
    expect(find(makeOlder(base), makeNewer(rows))).toEqual(want);
  });

  it("compares many rows of one time", () => {
    const trace = (i: number) => ({ trace: `t${i % 50}` });
    const older = Array.from({ length: 300 }, (_, i) => row("a", 5, `line ${i % 100}`, trace(i)));
    const newer = Array.from({ length: 200 }, (_, i) => row("a", 5, `line ${i}`, trace(i)));
    const want = newer.slice(0, 100).map((_, i) => `{app="a"} 5 line ${i} t${i % 50}`);
    expect(find(makeOlder(older), makeNewer(newer))).toEqual(want.sort());
  });

  it("ignores rows outside the span", () => {
    expect(find(makeOlder(base), makeNewer(base), [11, 20])).toEqual(['{app="a"} 20 two t']);
    expect(find(makeOlder(base), makeNewer(base), [10, 10])).toEqual([
      '{app="a"} 10 one',
      '{app="b"} 10 one',
    ]);
    expect(find(makeOlder(base), makeNewer(base), [30, 40])).toEqual([]);
  });

  it("never compares rows of different days", () => {
    const tomorrow = base.map((one) => ({ ...one, ns: one.ns + dayNs }));
    expect(find(makeOlder(base), makeNewer(tomorrow))).toEqual([]);
  });

  it("ends when the query was cancelled", () => {
    const check = () => {
      throw new Error("cancelled");
    };
    const [older, newer] = [makeOlder(base), makeNewer(base)];
    expect(() => find(older, newer, undefined, check)).toThrow("cancelled");
  });
});

describe("findShared in a head with some streams", () => {
  it("looks only at the streams that were asked for", () => {
    const all = makeHead(base, { id: "h" });
    const some = { ...all, streams: Uint32Array.of(1), texts: shareTexts(['{app="b"}']) };
    expect(find(segment(base), some)).toEqual(['{app="b"} 10 one']);
    expect(find(some, all)).toEqual(['{app="b"} 10 one']);
  });
});

const minute = 60_000_000_000;
/** Enough rows of one minute that segments have a digest of them. */
const manyOf = (app: string, at: number, count = 20) =>
  Array.from({ length: count }, (_, i) =>
    row(app, at * minute + i, `line ${i}`, i % 2 ? { trace: `t${i % 3}`, é: "ü" } : {}),
  );

describe.each(kinds.slice(0, 2))("digests of %s", (_name, makeOlder, makeNewer) => {
  /** Rows that are named, and blocks of which lines and times were read on either side. */
  const read = (older: SourceRow[], newer: SourceRow[]) => {
    const cache = new SourceCache({ maxOpenSegments: 2, maxIndexBytes: 1e9 });
    const refs = [makeOlder(older), makeNewer(newer)] as const;
    const found = cache.use((open) => {
      const a = countReads(open(refs[0]));
      const b = countReads(open(refs[1]));
      const [mask] = findShared([a.source, b.source], { check: () => {}, wantedFrom: 1 });
      const { rows } = mask!;
      const named = rows.reduce((sum, { length }) => sum + length, 0);
      // A head is in memory.
      const isHead = refs[1].kind === "head";
      return {
        named,
        lines: [a.lines, isHead ? [] : b.lines],
        times: [a.times, isHead ? [] : b.times],
      };
    });
    cache.close();
    return found;
  };
  const both = [...manyOf("a", 0), ...manyOf("a", 1), ...manyOf("b", 0)];

  it("that are equal say that all rows are, without a look at any", () => {
    expect(read(both, both)).toEqual({ named: 60, lines: [[], []], times: [[], []] });
  });

  it("of which one source has none say that there is nothing to compare", () => {
    const later = [...manyOf("a", 0), ...manyOf("a", 2)];
    const earlier = [...manyOf("a", 1), ...manyOf("a", 3)];
    expect(read(later, earlier)).toEqual({ named: 0, lines: [[], []], times: [[], []] });
  });

  it("that differ have rows of their minutes compared", () => {
    const other = [...both, row("a", minute + 3, "another")];
    const { named, lines } = read(both, other);
    expect([named, lines[0]]).toEqual([60, [0]]);
    expect(read(both, manyOf("a", 1, 19)).named).toBe(19);
  });

  it.each([
    ["a line", (one: SourceRow) => ({ ...one, line: "line 77" })],
    ["a time", (one: SourceRow) => ({ ...one, ns: one.ns + 1000n })],
    ["metadata", (one: SourceRow) => ({ ...one, metadata: { trace: "t9" } })],
  ])("differ by %s", (_case, change) => {
    const changed = manyOf("a", 0).map((one, i) => (i === 5 ? change(one) : one));
    expect(read(manyOf("a", 0), changed).named).toBe(19);
  });
});

const anyRow: fc.Arbitrary<SourceRow> = fc
  .record({
    app: fc.constantFrom("a", "b"),
    time: fc.integer({ min: 0, max: 6 }),
    line: fc.constantFrom("", "x", "xx", "y"),
    metadata: fc.record(
      { trace: fc.constantFrom("", "1", "2"), é: fc.constantFrom("ü", "ý") },
      { requiredKeys: [] },
    ),
  })
  .map(({ app, time, line, metadata }) => row(app, time, line, metadata));

function keyOf({ labels, ns, line, metadata = {} }: SourceRow): string {
  const pairs = Object.entries(metadata).filter(([, value]) => value !== "");
  return JSON.stringify([labels, String(ns), line, pairs.sort()]);
}

describe("findShared in any two sources", () => {
  it("agrees with a set of rows", () => {
    const some = fc.array(anyRow, { minLength: 1, maxLength: 40, size: "max" });
    const many = fc.constantFrom("a", "b").chain((app) => fc.nat(2).map((at) => manyOf(app, at)));
    const rows = fc.tuple(some, fc.array(many, { maxLength: 4 })).map((all) => all.flat(2));
    fc.assert(
      fc.property(
        rows,
        rows,
        fc.constantFrom(...kinds),
        (older, newer, [, makeOlder, makeNewer]) => {
          const known = new Set(older.map(keyOf));
          const ref = makeNewer(newer);
          // A segment holds each row once.
          const held =
            ref.kind === "segment" ? [...new Map(newer.map((r) => [keyOf(r), r])).values()] : newer;
          const want = held
            .filter((one) => known.has(keyOf(one)))
            .map(({ labels, ns, line, metadata }) =>
              `{app="${labels.app}"} ${ns - testDayNs} ${line} ${metadata?.trace ?? ""}`.trim(),
            );
          expect(find(makeOlder(older), ref)).toEqual(want.sort());
        },
      ),
      { numRuns: testRuns(60) },
    );
  });
});
