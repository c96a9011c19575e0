import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { errorCodeOf, type NeedleFormula } from "@skald/model";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { sealSegment } from "../../seal/seal.js";
import { goldenFilteredRows, goldenPath } from "../../testing/golden.js";
import { headOf, type Row } from "../../testing/seal-rows.js";
import { bytesRange, type SyncRangeReader } from "../range-reader.js";
import { openSegment } from "../read/reader.js";
import type { Segment } from "../segment.js";
import { describeSegment } from "../verify/describe-segment.js";
import type { FilterKind } from "./filter-table.js";

const identity = { id: "s", tenant: "t" };
const random = seededRandom(testSeed());
const apps = 7;
const lineOf = (i: number) =>
  `{"level":"${i % 9 ? "info" : "Error"}","order":"ord-${(i * 7919) % 100_003}","user":${random(9000)},` +
  `"trace":"${hex()}${hex()}","msg":"request ${["served", "refused", "TIMED OUT"][i % 3]} by shard ${i % 40}"}`;
const rows: Row[] = Array.from({ length: 24_000 }, (_, i) => ({
  labels: { app: `app-${i % apps}` },
  time: i * 1_000_003,
  line: i % apps === 6 ? `plain words of a quiet service, ${i % 50}` : lineOf(i),
  metadata: i % apps < 2 ? { trace_id: `t-${i * 7919}`, zone: `z${i % 3}` } : {},
}));

let directory: string;
let bytes: Uint8Array;
let segment: Segment;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "skald-filter-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const text = (value: string | Uint8Array, folds = false): NeedleFormula => ({
  kind: "text",
  text: Buffer.from(value),
  folds,
});
const value = (name: string, wanted: string): NeedleFormula => ({
  kind: "value",
  name,
  value: Buffer.from(wanted),
});

/** The blocks that are left of all. */
function left(formula: NeedleFormula, of = segment): number[] {
  const wanted = new Uint8Array(of.blockCount).fill(1);
  expect(of.refuse(formula, wanted)).toBe(true);
  return [...wanted.keys()].filter((block) => wanted[block] === 1);
}

function hex(): string {
  return random(2 ** 32 - 1)
    .toString(16)
    .padStart(8, "0");
}

const kinds: readonly FilterKind[] = ["bitmap", "ribbon"];

describe.each(kinds)("the filters of a segment, a %s for each block,", (filters) => {
  beforeAll(() => {
    const path = join(directory, "s.parquet");
    sealSegment({ ...identity, path, heads: [headOf([rows])], filters });
    bytes = readFileSync(path);
    segment = openSegment(bytesRange("s.parquet", bytes), identity);
  });

  it("refuse no block that has the text", () => {
    const lines = Array.from({ length: segment.blockCount }, (_, block) =>
      segment.block(block).lines(),
    );
    for (let n = testRuns(2000); n > 0; n--) {
      const block = random(lines.length);
      const { bytes, offsets } = lines[block]!;
      const row = random(offsets.length - 1);
      const from = offsets[row]! + random(offsets[row + 1]! - offsets[row]!);
      const planted = bytes.slice(from, Math.min(offsets[row + 1]!, from + 1 + random(40)));
      const wanted = new Uint8Array(lines.length);
      wanted[block] = 1;
      segment.refuse(text(planted, random(2) === 0), wanted);
      if (wanted[block] !== 1)
        throw new Error(`refused ${Buffer.from(planted).toString("latin1")}`);
    }
  });

  it("refuse no block that has the value", () => {
    for (let n = 0; n < 500; n++) {
      const i = random(Math.floor(rows.length / apps)) * apps;
      const { metadata = {} } = rows[i]!;
      const formula = value("trace_id", metadata.trace_id!);
      const has = (block: number) => {
        const column = segment.block(block).metadata("trace_id");
        if (column?.kind !== "bytes") return false;
        return Buffer.from(column.bytes).includes(metadata.trace_id!);
      };
      const blocks = left(formula);
      if (n < 10) {
        for (let b = 0; b < segment.blockCount; b++) if (has(b)) expect(blocks).toContain(b);
      }
      expect(blocks.length).toBeGreaterThan(0);
    }
  });

  it("refuse nearly every block that lacks the text", () => {
    let passed = 0;
    const asked = 200;
    for (let n = 0; n < asked; n++) passed += left(text(`${hex()}${hex()}`)).length;
    expect(segment.blockCount).toBeGreaterThan(8);
    expect(passed / (asked * segment.blockCount)).toBeLessThan(0.02);
    passed = 0;
    for (let n = 0; n < asked; n++) passed += left(value("trace_id", hex())).length;
    expect(passed / (asked * segment.blockCount)).toBeLessThan(0.02);
  });

  it("evaluate formulas", () => {
    const all = Array.from({ length: segment.blockCount }, (_, block) => block);
    const absent = text("no such words anywhere");
    const present = text("quiet service");
    const quiet = left(present);
    expect(quiet.length).toBeLessThan(all.length);
    expect(left(absent)).toEqual([]);
    expect(left(text("QUIET Service"))).toEqual(quiet);
    expect(left(text("abcd"))).toEqual(all);
    expect(left({ kind: "any", of: [absent, present] })).toEqual(quiet);
    expect(left({ kind: "any", of: [present, text("abcd")] })).toEqual(all);
    expect(left({ kind: "all", of: [absent, present] })).toEqual([]);
    expect(left({ kind: "all", of: [text("abcd"), present] })).toEqual(quiet);
    expect(left({ kind: "all", of: [value("zone", "z1"), present] })).toEqual([]);
    // another name with the same value, and a value without a name
    expect(left(value("zones", "z1"))).toEqual([]);
  });

  it("leave flags of other blocks alone", () => {
    const wanted = new Uint8Array(segment.blockCount);
    segment.refuse({ kind: "any", of: [text("quiet service"), text("request")] }, wanted);
    expect(wanted).toEqual(new Uint8Array(segment.blockCount));
  });

  it("answer the same once they are checked", () => {
    const fresh = openSegment(bytesRange("s.parquet", bytes), identity);
    const formula = text(`"order":"ord-15838"`);
    const first = left(formula, fresh);
    expect(first.length).toBeGreaterThan(0);
    expect(left(formula, fresh)).toEqual(first);
  });

  /** Filters stand between the page indexes and the index. */
  function filtersEnd(): number {
    const { byteLength } = bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const footer = view.getUint32(byteLength - 8, true);
    return Number(view.getBigUint64(byteLength - 8 - footer - 24, true));
  }

  it("are not read again for texts that were asked last", () => {
    const range = bytesRange("s.parquet", bytes);
    let reads = 0;
    const counting: SyncRangeReader = {
      ...range,
      read: (...asked) => {
        reads++;
        return range.read(...asked);
      },
    };
    const opened = openSegment(counting, identity);
    const readsFor = (formula: NeedleFormula) => {
      const before = reads;
      expect(left(formula, opened)).toEqual(left(formula));
      return reads - before;
    };
    const asked = text(`"order":"ord-15838"`);
    expect(readsFor(asked)).toBeGreaterThan(0);
    expect(readsFor(asked)).toBe(0);
    for (let i = 0; i < 60; i++) readsFor(text(`${i * 7919} is another text`));
    expect(readsFor(asked)).toBeGreaterThan(0);
  });

  it("are refused when they change after they were asked", () => {
    const changing = bytes.slice();
    const opened = openSegment(bytesRange("s.parquet", changing), identity);
    left(text(`"order":"ord-15838"`), opened);
    const { filters: sizes } = describeSegment(bytesRange("s.parquet", bytes));
    const from = filtersEnd() - sizes!.lines - sizes!.metadata;
    let refused = 0;
    for (let at = from; at < filtersEnd(); at += 97) {
      // What was asked is remembered, so each question is another one.
      const formula = text(`"order":"ord-${at}"`);
      const good = left(formula);
      changing[at]! ^= 0xff;
      try {
        expect(left(formula, opened)).toEqual(good);
      } catch (error) {
        expect((error as Error).message).toMatch(
          /the filter of blocks \d+ to \d+, at byte \d+, does not match its checksum: expected/,
        );
        refused++;
      }
      changing[at]! ^= 0xff;
    }
    expect(refused).toBeGreaterThan(10);
    const formula = text(`"order":"ord-77"`);
    expect(left(formula, opened)).toEqual(left(formula));
  });

  it("are refused when they are damaged", () => {
    const damaged = bytes.slice();
    damaged[filtersEnd() - 1]! ^= 1;
    const path = join(directory, "damaged.parquet");
    writeFileSync(path, damaged);
    const opened = openSegment(bytesRange(path, damaged), identity);
    let code: string | undefined;
    try {
      left({ kind: "all", of: [text("request"), value("zone", "z1")] }, opened);
    } catch (error) {
      code = errorCodeOf(error);
    }
    expect(code).toBe("internal");
  });
});

it.each(kinds)("spares blocks with signs that fold to letters when letters fold: %s", (filters) => {
  const path = join(directory, "signs.parquet");
  const one = (line: string) => ({ labels: { app: "a" }, time: 1, line });
  sealSegment({ ...identity, path, heads: [headOf([[one("ta\u017fk queue")]])], filters });
  const opened = openSegment(bytesRange(path, readFileSync(path)), identity);
  expect(left(text("task queue", true), opened)).toEqual([0]);
  expect(left(text("task queue"), opened)).toEqual([]);
});

it.each(kinds)("knows the values of names that share the map of metadata: %s", (filters) => {
  const path = join(directory, "rare.parquet");
  const names = Array.from({ length: 60 }, (_, i) => `name_${i}`);
  const rare = names.map((name, i) => ({
    labels: { app: "a" },
    time: i,
    line: "a line",
    metadata: { [name]: `value ${i}`, common: "all" },
  }));
  sealSegment({ ...identity, path, heads: [headOf([rare])], filters });
  const opened = openSegment(bytesRange(path, readFileSync(path)), identity);
  for (const [i, name] of names.entries()) {
    expect(left(value(name, `value ${i}`), opened)).toEqual([0]);
  }
  const strange = names.filter((name, i) => left(value(name, `value ${i + 1}`), opened).length > 0);
  expect(strange.length).toBeLessThan(5);
});

it.each(kinds)(
  "takes high-entropy lines, whose keys are thinned, and lines without any key: %s",
  (filters) => {
    const noise = Array.from({ length: 3000 }, (_, i) => ({
      labels: { app: i % 2 ? "a" : "b" },
      time: i,
      line: i % 2 ? "" : Buffer.from(Array.from({ length: 300 }, () => random(256))),
    }));
    const path = join(directory, "noise.parquet");
    sealSegment({ ...identity, path, heads: [headOf([noise])], filters });
    const file = readFileSync(path);
    const opened = openSegment(bytesRange(path, file), identity);
    for (let i = 0; i < 400; i += 2) {
      const line = noise[i]!.line as Uint8Array;
      expect(left(text(line.subarray(i % 250, (i % 250) + 30)), opened).length).toBeGreaterThan(0);
    }
    let passed = 0;
    for (let n = 0; n < 50; n++) passed += left(text(`${hex()}${hex()}${hex()}`), opened).length;
    expect(passed / (50 * opened.blockCount)).toBeLessThan(0.5);
    const filterBytes = describeSegment(bytesRange(path, file)).filters?.lines ?? 0;
    expect(filterBytes).toBeGreaterThan(0.01 * 1500 * 300);
    expect(filterBytes).toBeLessThan(0.032 * 1500 * 300);
  },
);

describe("golden files", () => {
  const open = (name: string) =>
    openSegment(bytesRange(name, readFileSync(goldenPath(name))), {
      id: "golden",
      tenant: "golden",
    });

  it("without filters are not asked", () => {
    const wanted = Uint8Array.of(1);
    expect(open("segment-v1.parquet").refuse(text("no such words"), wanted)).toBe(false);
    expect(wanted).toEqual(Uint8Array.of(1));
  });

  it.each(["filters", "bitmaps"])("with %s refuse what they do not have", (form) => {
    const golden = open(`segment-v1-${form}.parquet`);
    const blocks = Array.from({ length: golden.blockCount }, (_, block) => block);
    expect(left(text("GET /items/17 200"), golden).length).toBeGreaterThan(0);
    for (const { line, metadata = {} } of goldenFilteredRows()) {
      const formula = text(line as string);
      expect(left(formula, golden).length).toBeGreaterThan(0);
      for (const [name, wanted] of Object.entries(metadata)) {
        expect(left(value(name, wanted), golden).length).toBeGreaterThan(0);
      }
    }
    expect(left(text("POST /carts/17 503"), golden)).toEqual([]);
    expect(left(value("trace_id", "t9999"), golden)).toEqual([]);
    expect(blocks.length).toBeGreaterThan(1);
  });
});
