import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import type { SegmentRef } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { sealSegment } from "../seal/seal.js";
import { fixtureBaseNs, headOf, type Row } from "../testing/seal-rows.js";
import { type DayChange, editDay } from "./day-edit.js";
import { DayIndex } from "./day-index.js";

const directory = mkdtempSync(join(tmpdir(), "skald-counts-"));
afterAll(() => rmSync(directory, { recursive: true }));

let made = 0;

function segmentOf(rows: readonly Row[]): SegmentRef {
  const id = `s${made++}`;
  const path = join(directory, id);
  const heads = [headOf([rows], fixtureBaseNs)];
  const sealed = sealSegment({ tenant: "t", id, path, heads, sync: false });
  const { minNs, maxNs, sizeBytes } = sealed;
  return {
    kind: "segment",
    id,
    tenant: "t",
    minNs,
    maxNs,
    sizeBytes,
    location: { kind: "file", path },
  };
}

function edited(change: Partial<DayChange>) {
  return editDay({
    ...{ tenant: "t", baseNs: fixtureBaseNs, base: undefined, add: [], remove: [], forget: [] },
    ...{ generation: 1, writtenMs: 1, ...change },
  }).image;
}

/** What an index counts, as plain values: by segment and stream. */
function countsOf(index: DayIndex) {
  return index.segments.flatMap(({ id }, place) => {
    const runs = index.counts.of(place)!;
    return Array.from({ length: runs.count }, (_, run) => ({
      ...{ id, text: index.streams.text(runs.stream[run]!) },
      rows: runs.rowStart[run + 1]! - runs.rowStart[run]!,
      lineBytes: runs.lineBytes[run],
      minTime: runs.minTime[run],
      maxTime: runs.maxTime[run],
      names: index.counts.metadataNames(place),
      isAlone: index.counts.isAlone(place, run),
    }));
  });
}

const unit = fc.constantFrom(1, 1000, 1_000_000);
const rows = fc.array(
  fc.record({
    app: fc.constantFrom("a", "b", "c"),
    time: fc.integer({ min: 0, max: 40 }),
    // Two of the last take a block each, so that a stream may have several runs.
    line: fc.constantFrom("", "x", "größe", "long ".repeat(30_000)),
    metadata: fc.constantFrom<NonNullable<Row["metadata"]>>({}, { k: "v" }, { k: "v", trace: "1" }),
  }),
  { minLength: 1, maxLength: 12 },
);

describe("what an index counts of streams", () => {
  it("is what the segments hold, also after it was written again", () => {
    fc.assert(
      fc.property(fc.array(rows, { minLength: 1, maxLength: 6 }), unit, (lists, scale) => {
        const held = lists.map((list) =>
          list.map(({ app, time, ...rest }) => ({ labels: { app }, time: time * scale, ...rest })),
        );
        const refs = held.map(segmentOf);
        const [first, ...others] = refs.map((ref) => ({ ref, level: 0 }));
        const base = edited({ add: [first!] });
        const index = new DayIndex(edited({ base, add: others, generation: 2 }));
        const got = countsOf(index).sort(byPlace);
        expect(got).toEqual(
          refs.flatMap(({ id }, i) => wantOf(id, held[i]!, held, i)).sort(byPlace),
        );
      }),
      { numRuns: testRuns(60) },
    );
  });
});

function byPlace(a: { id: string; text: string }, b: { id: string; text: string }): number {
  return `${a.id} ${a.text}` < `${b.id} ${b.text}` ? -1 : 1;
}

function isSame(a: Row, b: Row): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The counts of one of some segments, row by row. */
function wantOf(id: string, own: readonly Row[], all: readonly (readonly Row[])[], place: number) {
  const distinct = [...new Map(own.map((row) => [JSON.stringify(row), row])).values()];
  const names = [...new Set(own.flatMap(({ metadata = {} }) => Object.keys(metadata)))].sort();
  return [...new Set(own.map(({ labels }) => labels.app!))].map((app) => {
    const of = (list: readonly Row[]) => list.filter(({ labels }) => labels.app === app);
    const spanOf = (list: readonly Row[]) => of(list).map(({ time }) => time);
    const times = spanOf(own);
    const [minTime, maxTime] = [Math.min(...times), Math.max(...times)];
    const others = all.filter((_, i) => i !== place);
    return {
      ...{ id, text: `{app="${app}"}`, names, minTime, maxTime },
      rows: of(distinct).length,
      lineBytes: of(distinct).reduce((sum, { line }) => sum + Buffer.byteLength(line), 0),
      isAlone: others.every((list) =>
        list.every((row) => !of(own).some((one) => isSame(one, row))),
      ),
    };
  });
}
