import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { errorCodeOf, type Matcher } from "@skald/model";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import {
  goldenBaseNs,
  goldenCountedDay,
  goldenDay,
  goldenMarkedDay,
  goldenPath,
} from "../testing/golden.js";
import { DayEdit } from "./day-edit.js";
import { DayIndex, decodeDayIndex, type GoneSegment, type IndexedSegment } from "./day-index.js";

const day = { tenant: "t", baseNs: goldenBaseNs };
const app = (value: string): Matcher[] => [{ name: "app", op: "=", value }];

function segment(id: string, from: number, to: number, level = 0): IndexedSegment {
  const times = { minNs: goldenBaseNs + BigInt(from), maxNs: goldenBaseNs + BigInt(to) };
  return { id, ...times, sizeBytes: 1000 + from, rows: 10, lineBytes: 5000, level };
}

function gone(id: string, by: string | undefined): GoneSegment {
  const { minNs, maxNs } = segment(id, 0, 9);
  return { id, minNs, maxNs, sinceMs: 77, by };
}

function reopened(edit: DayEdit, generation = 1): DayIndex {
  return new DayIndex(decodeDayIndex("x", edit.encode({ generation, writtenMs: 5 })));
}

function idsOf(index: DayIndex, from: number, to: number, matchers: Matcher[] = []): string[] {
  const range = { fromNs: goldenBaseNs + BigInt(from), toNs: goldenBaseNs + BigInt(to) };
  return index.select(range, matchers).map((place) => index.segments[place]!.id);
}

describe("a day index", () => {
  it("finds segments by streams and times", () => {
    const edit = new DayEdit(day);
    edit.add(segment("late", 500, 900), ['{app="a"}']);
    edit.add(segment("early", 0, 99), ['{app="a"}', '{app="b", pod="p"}']);
    const index = reopened(edit);
    expect(idsOf(index, 0, 1000)).toEqual(["early", "late"]);
    expect(idsOf(index, 100, 500)).toEqual([]);
    expect(idsOf(index, 99, 100)).toEqual(["early"]);
    expect(idsOf(index, 0, 1000, app("b"))).toEqual(["early"]);
    expect(idsOf(index, 0, 1000, app("a"))).toEqual(["early", "late"]);
    expect(idsOf(index, 0, 1000, app("c"))).toEqual([]);
    expect(index.find("late")).toEqual(segment("late", 500, 900));
    expect(index.knows("other")).toBe(false);
  });

  it("says which segment has the rows of one that is gone, also after that was replaced", () => {
    const first = new DayEdit(day);
    first.add(segment("one", 0, 9), ['{app="a"}']);
    first.add(segment("two", 0, 9), ['{app="b"}']);
    const second = new DayEdit(reopened(first));
    second.add(segment("both", 0, 9, 1), ['{app="a"}', '{app="b"}']);
    for (const id of ["one", "two"]) second.remove(gone(id, "both"));
    const index = reopened(second, 2);
    expect(idsOf(index, 0, 10, app("b"))).toEqual(["both"]);
    expect(index.goneOf("two")).toEqual(gone("two", "both"));
    const third = new DayEdit(index);
    third.remove(gone("both", undefined));
    third.forget("one");
    const last = reopened(third, 3);
    expect(last.goneOf("two")?.by).toBeUndefined();
    expect(last.knows("one")).toBe(false);
    expect([last.generation, last.writtenMs, last.streams.count]).toEqual([3, 5, 0]);
  });

  it("answers what the segments themselves would", () => {
    for (let run = 0; run < testRuns(30); run++) {
      const random = seededRandom(testSeed() * 3000 + run);
      const { edit, streamsOf } = randomDay(random);
      const index = reopened(edit);
      for (const value of ["a0", "a1", "a5"]) {
        const want = [...streamsOf].filter(([, texts]) => texts.includes(`{app="${value}"}`));
        const found = idsOf(index, 0, 2000, app(value)).sort();
        expect(found).toEqual(want.map(([id]) => id).sort());
      }
    }
  });

  it("is refused when any byte of it is another", () => {
    const edit = new DayEdit(day);
    edit.add(segment("one", 0, 9), ['{app="a"}']);
    const bytes = edit.encode({ generation: 1, writtenMs: 1 });
    for (let at = 0; at < bytes.length; at++) {
      // The last word of the header is not used.
      if (at >= 20 && at < 24) continue;
      const bad = new Uint8Array(bytes);
      bad[at]! ^= 0x10;
      expect(codeOf(() => decodeDayIndex("x", bad))).toBe("internal");
    }
    for (const length of [0, 23, 24, bytes.length - 1]) {
      expect(codeOf(() => decodeDayIndex("x", bytes.subarray(0, length)))).toBe("internal");
    }
  });

  it("reads what its first version wrote", () => {
    const index = new DayIndex(decodeDayIndex("golden", readFileSync(goldenPath("day-v1.day"))));
    const want = reopened(goldenDay(), 42);
    expect(index.segments).toEqual(want.segments);
    expect(index.gone).toEqual(want.gone);
    expect([index.tenant, index.baseNs, index.generation]).toEqual(["golden", goldenBaseNs, 42]);
    const streams = Array.from({ length: index.streams.count }, (_, i) => index.streams.text(i));
    expect(streams).toEqual(['{app="api"}', '{app="web", größe="1"}']);
    expect(streams.map((_, i) => [...index.segmentsOf(i)])).toEqual([[0, 1], [1]]);
  });
});

it("reads what the first version with counts wrote", () => {
  const bytes = readFileSync(goldenPath("day-v1-counts.day"));
  const index = new DayIndex(decodeDayIndex("golden", bytes));
  const want = reopened(goldenCountedDay(), 43);
  expect(index.segments).toEqual(want.segments);
  const place = index.segments.findIndex(({ id }) => id === "head-4");
  const texts = ['{app="api"}', '{app="db"}', '{app="web", größe="1"}'];
  expect(texts.map((_, i) => index.streams.text(i))).toEqual(texts);
  expect(index.counts.size).toBe(2);
  expect(index.counts.of(place)).toEqual({
    ...{ count: 2, stream: Uint32Array.of(0, 1), rowStart: Uint32Array.of(0, 4, 5) },
    ...{ minTime: Float64Array.of(1000, 7000), maxTime: Float64Array.of(9000, 7000) },
    lineBytes: Float64Array.of(39, 11),
  });
  expect(index.counts.metadataNames(place)).toEqual(["level", "trace_id"]);
  expect([0, 1].map((run) => index.counts.isAlone(place, run))).toEqual([false, true]);
});

it("reads what the first version with marks wrote", () => {
  const bytes = readFileSync(goldenPath("day-v1-marks.day"));
  const index = new DayIndex(decodeDayIndex("golden", bytes));
  expect(index.segments).toEqual(reopened(goldenMarkedDay(), 44).segments);
  const places = ["head-5", "head-6"].map((id) => index.segments.findIndex((one) => one.id === id));
  expect(places.map((place) => index.counts.marks(place))).toEqual([
    Uint32Array.of(1, 0xffffffff, 3),
    Uint32Array.of(2, 5, 3),
  ]);
  const alone = places.map((place) => [0, 1].map((run) => index.counts.isAlone(place, run)));
  expect(alone).toEqual([
    [true, false],
    [true, false],
  ]);
});

it("has marks of segments that share times first, and of the last of the others, as many as there is room for", () => {
  const edit = new DayEdit(day);
  const add = (id: string, from: number, rows: number) =>
    edit.add({ ...segment(id, from, from + 9), rows }, ['{app="a"}'], {
      ...{ metadataNames: [], rows: Float64Array.of(rows), lineBytes: Float64Array.of(rows) },
      ...{ minTimes: Float64Array.of(from), maxTimes: Float64Array.of(from + 9) },
      marks: Uint32Array.from({ length: rows }, (_, i) => from + 10 * i),
    });
  const most = 1024 * 1024;
  add("met", 100, most - 2048);
  add("meeting", 105, 1024);
  for (let at = 0; at < 3; at++) add(`alone-${at}`, 200 + 10 * at, 512);
  const marked = () => {
    const index = reopened(edit);
    return index.segments.filter((_, i) => index.counts.marks(i) !== undefined).map(({ id }) => id);
  };
  expect(marked()).toEqual(["met", "meeting", "alone-1", "alone-2"]);
  add("long", 109, 513);
  expect(marked()).toEqual(["met", "meeting", "long"]);
});

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return errorCodeOf(error);
  }
  return "none";
}

function randomDay(random: Random) {
  const edit = new DayEdit(day);
  const streamsOf = new Map<string, string[]>();
  for (let i = 0; i < 1 + random(40); i++) {
    const texts = new Set(Array.from({ length: 1 + random(4) }, () => `{app="a${random(6)}"}`));
    const from = random(1000);
    edit.add(segment(`s${i}`, from, from + random(900)), texts);
    streamsOf.set(`s${i}`, [...texts]);
  }
  for (const id of [...streamsOf.keys()]) {
    if (random(4) > 0) continue;
    edit.remove(gone(id, undefined));
    streamsOf.delete(id);
  }
  return { edit, streamsOf };
}
