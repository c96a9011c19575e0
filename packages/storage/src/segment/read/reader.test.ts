import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  errorCodeOf,
  formatLabels,
  labelsFromObject,
  type Matcher,
  paddingBytes,
} from "@skald/model";
import { MemoryStore } from "../../object-store/memory-store.js";
import { sealSegment } from "../../seal/seal.js";
import { goldenPath, goldenSegmentRows } from "../../testing/golden.js";
import {
  fixtureBaseNs,
  headOf,
  type PlainRow,
  type Row,
  rowsOf,
  sealedRows,
} from "../../testing/seal-rows.js";
import { zstd } from "../../zstd.js";
import { bytesRange, objectRange } from "../range-reader.js";
import type { Segment } from "../segment.js";
import { asBytes } from "../spread.js";
import { openSegment, openSegmentAsync, openSegmentFile } from "./reader.js";

const identity = { id: "s", tenant: "t" };
const { signal } = new AbortController();
const rows: Row[] = Array.from({ length: 60 }, (_, i) => ({
  labels: { app: ["api", "db", "web"][i % 3]!, ...(i % 2 ? { env: "prod" } : {}) },
  time: i * 1_000_003,
  line: `line ${i} ${"lorem ipsum ".repeat(i % 9)}`,
  metadata: {
    trace_id: String(i * 7919),
    ...(i % 5 === 0 ? { Trace_id: `clash ${i}` } : {}),
    detected_level: i % 4 ? "info" : "",
  },
}));

let directory: string;
let small: Uint8Array;
let large: string;
let largeRows: PlainRow[];
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "skald-reader-"));
  const path = join(directory, "small.parquet");
  sealSegment({ ...identity, path, heads: [headOf([rows])] });
  small = readFileSync(path);
  large = join(directory, "large.parquet");
  const many = Array.from({ length: 1500 }, (_, i) => ({
    labels: { app: `app-${i % 5}` },
    time: 86_399_000_000_000 - i * 1000,
    line: `${i} ${String(i * 7919).repeat(1200)}`,
    metadata: i % 3 ? { user: `u${i % 50}` } : {},
  }));
  largeRows = sealedRows(many);
  sealSegment({ ...identity, path: large, heads: [headOf([many])] });
});
afterAll(() => rmSync(directory, { recursive: true }));

const openBytes = (bytes: Uint8Array) => openSegment(bytesRange("test.parquet", bytes), identity);

describe("an opened segment", () => {
  it("says what it holds", () => {
    const segment = openBytes(small);
    expect(segment).toMatchObject({
      id: "s",
      tenant: "t",
      baseNs: fixtureBaseNs,
      minNs: fixtureBaseNs,
      maxNs: fixtureBaseNs + 59n * 1_000_003n,
      rowCount: 60,
      sizeBytes: small.byteLength,
      streamCount: 6,
      blockCount: 1,
    });
    expect(segment.labelNames()).toEqual(["app", "env"]);
    expect(segment.labelValues("app")).toEqual(["api", "db", "web"]);
    expect(segment.labelValues("none")).toEqual([]);
    expect(segment.text(1)).toBe('{app="api"}');
    expect(segment.labels(0)).toEqual({ names: ["app", "env"], values: ["api", "prod"] });
  });

  it("has headers that agree with its blocks", () => {
    const { segment, close } = openSegmentFile({
      ...identity,
      location: { kind: "file", path: large },
    });
    let total = 0;
    for (let b = 0; b < segment.blockCount; b++) {
      const header = segment.header(b);
      const block = segment.block(b);
      const times = block.timestamps();
      expect(header.rowCount).toBe(times.length);
      expect(header.minTime).toBe(Math.min(...times));
      expect(header.maxTime).toBe(Math.max(...times));
      expect(header.lineBytes).toBe(block.lines().offsets[header.rowCount]);
      expect(header.lineBytes).toBeLessThanOrEqual(256 * 1024);
      expect(header.storedBytes).toBeLessThan(header.rawBytes);
      expect(header.rawBytes).toBeGreaterThan(header.lineBytes);
      for (let r = 0; r < header.runs.count; r++) {
        const run = times.subarray(header.runs.rowStart[r], header.runs.rowStart[r + 1]);
        expect(run[0]).toBe(header.runs.minTime[r]);
        expect(run.at(-1)).toBe(header.runs.maxTime[r]);
        expect(Float64Array.from(run).sort()).toEqual(Float64Array.from(run));
      }
      const { bytes } = block.lines();
      const behind = bytes.buffer.byteLength - bytes.byteOffset - bytes.byteLength;
      expect(behind).toBeGreaterThanOrEqual(paddingBytes);
      total += header.rowCount;
    }
    close();
    expect(total).toBe(1500);
    expect(segment.blockCount).toBeGreaterThan(10);
  });

  it.each<[string, Matcher[], string[]]>([
    ["equality", [{ name: "app", op: "=", value: "db" }], ['{app="db", env="prod"}', '{app="db"}']],
    ["a value that no stream has", [{ name: "app", op: "=", value: "d" }], []],
    ["a name that no stream has", [{ name: "pod", op: "=", value: "x" }], []],
    [
      "absence",
      [{ name: "env", op: "=", value: "" }],
      ['{app="api"}', '{app="db"}', '{app="web"}'],
    ],
    [
      "inequality, which absence satisfies",
      [
        { name: "env", op: "!=", value: "prod" },
        { name: "app", op: "!=", value: "db" },
      ],
      ['{app="api"}', '{app="web"}'],
    ],
    [
      "an expression",
      [
        { name: "app", op: "=~", value: "api|w.*" },
        { name: "env", op: "=~", value: ".+" },
      ],
      ['{app="api", env="prod"}', '{app="web", env="prod"}'],
    ],
    ["a negated expression", [{ name: "app", op: "!~", value: ".*[bp].*" }], []],
    [
      "absence of any name",
      [
        { name: "pod", op: "!~", value: ".+" },
        { name: "app", op: "=", value: "db" },
      ],
      ['{app="db", env="prod"}', '{app="db"}'],
    ],
  ])("matches streams by %s", (_, matchers, want) => {
    const segment = openBytes(small);
    const got = [...segment.matchStreams(matchers)].map((stream) => segment.text(stream));
    expect(got).toEqual(want);
  });

  it("matches every stream without matchers", () => {
    expect([...openBytes(small).matchStreams([])]).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("reads columns ahead in few reads", () => {
    let reads = 0;
    const bytes = readFileSync(large);
    const reader = bytesRange("large", bytes);
    const segment = openSegment(
      {
        ...reader,
        read: (offset, length) => {
          reads++;
          return reader.read(offset, length);
        },
      },
      identity,
    );
    reads = 0;
    const blocks = { from: 0, to: segment.blockCount };
    const pages = segment.readPages(blocks, { timestamps: true, lines: true, metadata: ["user"] });
    expect(reads).toBeLessThanOrEqual(3);
    const held = reads;
    let row = 0;
    for (let b = 0; b < segment.blockCount; b++) {
      const block = segment.block(b, pages);
      for (const time of block.timestamps()) expect(time).toBe(largeRows[row++]?.time);
      block.lines();
      block.metadata("user");
    }
    expect(reads).toBe(held);
    expect(row).toBe(1500);
  });

  it("reads all blocks through an object store", async () => {
    const store = new MemoryStore();
    await store.putFile("key", large, { signal });
    const sizeBytes = readFileSync(large).byteLength;
    const segment = await openSegmentAsync(objectRange(store, "key", sizeBytes), identity, {
      signal,
    });
    expect(() => segment.block(0).lines()).toThrow("not fetched");
    expect(() => segment.readPages({ from: 0, to: 1 }, all)).toThrow("fetchPages");
    const pages = await segment.fetchPages({ from: 0, to: segment.blockCount }, all, { signal });
    const fetched: Segment = {
      blockCount: segment.blockCount,
      block: (b: number) => segment.block(b, pages),
      text: (stream: number) => segment.text(stream),
    } as Segment;
    expect(rowsOf(fetched)).toEqual(largeRows);
  });
});

it("reads a column of metadata when its values are first asked for, once", () => {
  const file = bytesRange("s", small);
  const reads: number[] = [];
  const read: typeof file.read = (offset, length) => {
    reads.push(offset);
    return file.read(offset, length);
  };
  const block = openSegment({ ...file, read }, identity).block(0);
  // A column of values, one of codes, and one of the map.
  for (const name of ["trace_id", "detected_level", "Trace_id"]) {
    reads.length = 0;
    const column = block.metadata(name)!;
    expect([name, block.metadata(name) === column, reads.length]).toEqual([name, true, 0]);
    const { offsets } = asBytes(column);
    expect(offsets.at(-1)).toBeGreaterThan(0);
    expect(reads.length).toBeGreaterThan(0);
    reads.length = 0;
    expect(asBytes(column).offsets).toEqual(offsets);
    expect(reads).toEqual([]);
  }
  expect(block.metadata("span")).toBeUndefined();
});

const all = { timestamps: true, lines: true, metadata: "all" } as const;

describe("a damaged file", () => {
  /** Reads everything that the reader can read. */
  const readAll = (bytes: Uint8Array) => {
    const segment = openBytes(bytes);
    const columns = segment.labelNames().map((name) => segment.labelValues(name));
    return { rows: rowsOf(segment), columns, matched: [...segment.matchStreams([])] };
  };

  it("is refused or read right, whichever byte is wrong", () => {
    const want = readAll(small);
    const damaged = new Uint8Array(small);
    let refused = 0;
    for (let at = 0; at < damaged.length; at += at > damaged.length - 400 ? 1 : 3) {
      const good = damaged[at]!;
      damaged[at] = good ^ (1 << (at % 8));
      try {
        expect(readAll(damaged)).toEqual(want);
      } catch (error) {
        expect(errorCodeOf(error)).toBe("internal");
        expect(String(error)).toContain("test.parquet");
        refused++;
      }
      damaged[at] = good;
    }
    expect(refused).toBeGreaterThan(100);
  });

  it("is refused when it is cut short anywhere", () => {
    for (let length = 0; length < small.length; length += 7) {
      expect(() => openBytes(small.subarray(0, length))).toThrow("test.parquet");
    }
  });

  it("is refused when something is missing in front or appended", () => {
    expect(() => openBytes(small.subarray(1))).toThrow("test.parquet");
    expect(() => openBytes(Buffer.concat([small, Buffer.alloc(1)]))).toThrow("test.parquet");
    expect(() => openBytes(Buffer.concat([Buffer.alloc(4), small]))).toThrow("test.parquet");
  });

  it("is refused when a page changes after it was opened", () => {
    const bytes = new Uint8Array(small);
    const segment = openBytes(bytes);
    bytes.fill(0, 4, 2000);
    expect(() => segment.block(0).lines()).toThrow(
      expect.objectContaining({ detail: { kind: "corrupt_segment", name: "test.parquet" } }),
    );
    expect(() => segment.block(0).timestamps()).toThrow("does not match its checksum");
  });

  it("is refused when a page changes after it was read, which the error names", () => {
    const path = join(directory, "changing.parquet");
    writeFileSync(path, small);
    const { segment, close } = openSegmentFile({ ...identity, location: { kind: "file", path } });
    const columns: [string, () => unknown][] = [
      ["timestamp", () => segment.block(0).timestamps()],
      ["line", () => segment.block(0).lines()],
      ["metadata.trace_id", () => asBytes(segment.block(0).metadata("trace_id")!)],
    ];
    const good = columns.map(([, read]) => read());
    const met = new Map<string, number>();
    for (let at = 4; at < small.length; at += 3) {
      const damaged = Buffer.from(small);
      damaged[at]! ^= 1;
      writeFileSync(path, damaged);
      for (const [i, [name, read]] of columns.entries()) {
        try {
          expect(read()).toEqual(good[i]);
        } catch (error) {
          expect((error as Error).message).toMatch(
            new RegExp(
              `changing.parquet cannot be read: the page of ${name}, block 0, at byte \\d+ does not match its checksum: expected [0-9a-f]{8}, found [0-9a-f]{8}$`,
            ),
          );
          met.set(name, (met.get(name) ?? 0) + 1);
        }
      }
    }
    close();
    for (const [name] of columns) expect(met.get(name)).toBeGreaterThan(10);
  });
});

describe("a file that is no segment", () => {
  it.each([
    ["empty", new Uint8Array(0)],
    ["short", Buffer.from("PAR1")],
    ["text", Buffer.from("this is a text and not a parquet file at all, is it".repeat(3))],
    ["parquet without a trailer", Buffer.from(`PAR1${"x".repeat(100)}\x10\0\0\0PAR1`, "latin1")],
  ])("is refused: %s", (_, bytes) => {
    expect(() => openBytes(bytes)).toThrow(/segment test.parquet (cannot be read|does not|has no)/);
  });

  it("is refused for another tenant", () => {
    const open = () => openSegment(bytesRange("x", small), { id: "s", tenant: "other" });
    expect(open).toThrow("belongs to tenant t, not other");
  });

  it("is said to be gone when there is no file", () => {
    const path = join(directory, "none");
    const open = () => openSegmentFile({ ...identity, location: { kind: "file", path } });
    expect(open).toThrow(expect.objectContaining({ code: "not_found" }));
  });

  it("leaves no file open when it is refused", () => {
    const path = join(directory, "bad");
    writeFileSync(path, "bad");
    const open = () => openSegmentFile({ ...identity, location: { kind: "file", path } });
    for (let i = 0; i < 5; i++) expect(open).toThrow("too short");
  });
});

describe("the golden file", () => {
  it("of version 1 is read", () => {
    const path = goldenPath("segment-v1.parquet");
    const { segment, close } = openSegmentFile({
      id: "golden",
      tenant: "golden",
      location: { kind: "file", path },
    });
    const rows = goldenSegmentRows();
    expect(rowsOf(segment)).toEqual(sealedRows(rows));
    expect(segment.text(0)).toBe(formatLabels(labelsFromObject(rows[0]!.labels)));
    close();
  });
});

it("has the layout of docs/formats/segment.md", () => {
  const path = join(directory, "example.parquet");
  const labels = { app: "a" };
  const rows = [
    { labels, time: 1000, line: "hi" },
    { labels, time: 1005, line: "you", metadata: { k: "v" } },
  ];
  sealSegment({ tenant: "t", id: "x", path, heads: [headOf([rows])] });
  const file = readFileSync(path);
  const hex = (bytes: Uint8Array, at: number, length: number) =>
    Buffer.from(bytes.subarray(at, at + length)).toString("hex");
  expect(hex(file, 0, 4)).toBe("50415231");
  expect(hex(file, 0x20, 0x12)).toBe("80010402d08fb8caa8f1cbe9310a00000000");
  expect(hex(file, 0x4e, 0x0f)).toBe("800104020402000000006869796f75");
  expect(hex(file, 0x110, 14)).toBe("191102191808e803a744c597e918");
  const footerBytes = file.readUInt32LE(file.length - 8);
  const trailerAt = file.length - 8 - footerBytes - 24;
  expect(footerBytes).toBe(770);
  expect(hex(file, 0x180, 8)).toBe("0108301218000000");
  expect(hex(file, trailerAt, 8)).toBe("8801000000000000");
  expect(hex(file, trailerAt + 16, 8)).toBe(Buffer.from("SKALDIX1").toString("hex"));
  const index = zstd.decompress(file.subarray(0x188, trailerAt), 1349);
  expect(hex(index, 0, 0x24)).toBe(
    "370000000100020000000000020000000c0000000200010000000000080000004a000000",
  );
  expect(hex(index, 0x374, 19)).toBe("80010402020000000000747880010408d2c402");
});
