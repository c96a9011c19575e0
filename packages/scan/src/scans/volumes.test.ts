import { afterAll, describe, expect, it } from "@jest/globals";
import type { VolumePlan } from "@skald/contracts";
import { formatLabels, type Matcher } from "@skald/model";
import { type LocalRef, openSegmentFile } from "@skald/storage";
import { type OpenSource, openHead, segmentSource } from "../source/source.js";
import {
  contextOf,
  countReads,
  ms,
  sampleBytes,
  sampleMask,
  sampleSources,
} from "../testing/scans.js";
import { makeDirectory, makeHead, makeSegment, row, testDayNs } from "../testing/sources.js";
import { scanVolumes } from "./volumes.js";

const { refs, open, close } = sampleSources();
afterAll(close);
const context = contextOf();
const all: Matcher = { name: "app", op: "=~", value: ".+" };
const lineBytes = sampleBytes / 6;

interface Times {
  readonly from?: number;
  readonly to?: number;
  readonly first?: number;
  readonly step?: number;
  readonly count?: number;
}

/** Buckets of the sample's 60 ms: their number, width in ms, and start in ms after midnight. */
function planOf(times: Times = {}, more: Partial<VolumePlan> = {}): VolumePlan {
  const { from = 0, to = 60 } = times;
  const { first = from, step = to - from, count = 1 } = times;
  const at = (time: number) => testDayNs + BigInt(time * ms);
  return {
    matchers: [all],
    groupBy: { kind: "series", names: ["app"] },
    buckets: { firstNs: at(first), stepNs: BigInt(step * ms), count },
    maxGroups: 10,
    countsStreams: true,
    fromNs: at(from),
    toNs: at(to),
    ...more,
  };
}

describe.each(refs)("scanVolumes over %s", (_name, ref) => {
  const spied = countReads(open(ref));
  const scan = (plan: VolumePlan, more = {}) => {
    const sources = [{ ref, sequence: 0, ...more }];
    return scanVolumes({ plan, sources }, () => spied.source, context);
  };
  const cells = (plan: VolumePlan, more = {}) => {
    const { groups, group, bucket, rows, bytes } = scan(plan, more);
    // A line has some bytes besides the filler.
    const lines = (cell: number) => Math.round(bytes[cell]! / lineBytes);
    return Array.from(group, (one, i) => {
      expect(lines(i)).toBe(rows[i]);
      return `${formatLabels(groups[one]!)} ${bucket[i]} ${rows[i]}`;
    }).sort();
  };

  it.each<[string, VolumePlan, string[]]>([
    ["all of a source", planOf(), ['{app="a"} 0 6', '{app="b"} 0 6']],
    ["a range that cuts blocks", planOf({ from: 10, to: 40 }), ['{app="a"} 0 3', '{app="b"} 0 3']],
    [
      "buckets that cut blocks",
      planOf({ first: -10, step: 30, count: 3 }),
      [
        '{app="a"} 0 2',
        '{app="a"} 1 3',
        '{app="a"} 2 1',
        '{app="b"} 0 2',
        '{app="b"} 1 3',
        '{app="b"} 2 1',
      ],
    ],
    [
      "buckets that began long ago",
      planOf({ first: -400 * 86_400_000, step: 86_400_000, count: 402 }),
      ['{app="a"} 400 6', '{app="b"} 400 6'],
    ],
    ["a selector", planOf({}, { matchers: [{ ...all, value: "b" }] }), ['{app="b"} 0 6']],
    ["one group of all", planOf({}, { groupBy: { kind: "series", names: [] } }), ["{} 0 12"]],
    ["all labels", planOf({}, { groupBy: { kind: "series" } }), ['{app="a"} 0 6', '{app="b"} 0 6']],
    ["names of labels", planOf({}, { groupBy: { kind: "names" } }), ['{app=""} 0 12']],
    ["names that no stream has", planOf({}, { groupBy: { kind: "names", names: ["x"] } }), []],
    ["no time", planOf({ from: 100, to: 200 }), []],
  ])("counts %s", (_case, plan, want) => {
    expect(cells(plan)).toEqual(want);
  });

  it("reads no stored line, and times only where headers do not say enough", () => {
    spied.times.length = 0;
    scan(planOf());
    scan(planOf({ from: 20, to: 40 }));
    expect(spied.times).toEqual([]);
    // Blocks have rows at 0 and 10, 20 and 30, 40 and 50 ms.
    scan(planOf({ from: 10, to: 40 }));
    expect(spied.times).toEqual([0, 3]);
    if (spied.source.kind === "segment") expect(spied.lines).toEqual([]);
  });

  it("leaves out the rows of a mask", () => {
    expect(cells(planOf(), { mask: sampleMask })).toEqual(['{app="a"} 0 5', '{app="b"} 0 5']);
    // Row 1 of block 0 is at 10 ms, row 0 of block 4 at 20 ms.
    const cut = cells(planOf({ from: 10, to: 40 }), { mask: sampleMask });
    expect(cut).toEqual(['{app="a"} 0 2', '{app="b"} 0 2']);
  });

  it("counts blocks and streams that have rows in the range", () => {
    const { blocks, streams } = scan(planOf({ from: 10, to: 40 }));
    expect([blocks, streams.length]).toEqual([4, 4]);
    expect(scan(planOf({}, { countsStreams: false })).streams).toHaveLength(0);
  });

  it("refuses too many groups", () => {
    expect(() => scan(planOf({}, { maxGroups: 1 }))).toThrow(
      "the query hit the max number of series limit (limit: 1 series)",
    );
  });
});

describe("bytes", () => {
  const { path, remove } = makeDirectory();
  afterAll(remove);
  const rows = ["a", "bbb", "ccccc"].map((line, i) =>
    row("x", i * 10 * ms, line, i === 1 ? {} : { k: "v".repeat(i), detected_level: "info" }),
  );
  // The first row has no k, because an empty value is none.
  const sizes = [1 + 18, 3, 5 + 3 + 18];
  const segment = makeSegment(path, rows, { id: "s" });
  const opened = openSegmentFile(segment);
  afterAll(opened.close);

  it.each([
    ["a segment", segment, () => segmentSource(opened.segment)],
    ["a head", makeHead(rows, { id: "h", rowsPerBlock: 3 }), openHead],
  ] as const)("are those of lines and structured metadata, in %s", (_, ref, open) => {
    const bytesOf = (more = {}) => {
      const sources = [{ ref: ref as LocalRef, sequence: 0, ...more }];
      return [...scanVolumes({ plan: planOf(), sources }, open as OpenSource, context).bytes];
    };
    expect(bytesOf()).toEqual([sizes[0]! + sizes[1]! + sizes[2]!]);
    // What another source has in part is counted row by row.
    for (const [left, want] of sizes.entries()) {
      const others = [0, 1, 2].filter((one) => one !== left);
      const mask = { blocks: Uint32Array.of(0), rows: [Uint32Array.from(others)] };
      expect(bytesOf({ mask })).toEqual([want]);
    }
    const mask = { blocks: Uint32Array.of(0), rows: [Uint32Array.of(0, 1, 2)] };
    expect(bytesOf({ mask })).toEqual([]);
  });
});

it("counts the lines of a head to the byte, where a range cuts it or rows are left out", () => {
  const rows = ["a", "bbb", "ccccc"].map((line, i) => row("x", i * 10 * ms, line));
  const ref = makeHead(rows, { id: "h", rowsPerBlock: 3 });
  const bytesOf = (plan: VolumePlan, more = {}) =>
    scanVolumes({ plan, sources: [{ ref, sequence: 0, ...more }] }, () => openHead(ref), context);
  expect([...bytesOf(planOf({ from: 0, to: 15 })).bytes]).toEqual([4]);
  const mask = { blocks: Uint32Array.of(0), rows: [Uint32Array.of(1)] };
  expect([...bytesOf(planOf(), { mask }).bytes]).toEqual([6]);
});
