import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { DayEdit, dayIndexKey, MemoryStore, segmentKey } from "@skald/storage";
import type { Host } from "../shell/command.js";
import { runForTest } from "../testing/run-command.js";

const golden = (name: string) =>
  fileURLToPath(new URL(`../../../storage/testdata/${name}`, import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "skald-cli-"));
afterAll(() => rmSync(directory, { recursive: true }));
const { signal } = new AbortController();

const bucket = { store: new MemoryStore() };
let flagsSeen: readonly string[] = [];

function run(...argv: string[]) {
  const openBucket: Host["openBucket"] = async (_place, flags) => {
    flagsSeen = flags;
    return { store: bucket.store, close: async () => {} };
  };
  return runForTest(argv, { host: { openBucket } });
}

function damaged(name: string, at: number): string {
  const bytes = readFileSync(golden(name));
  bytes[at]! ^= 1;
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

describe("inspect", () => {
  it.each([
    ["segment-v1-levels.parquet", { kind: "segment", tenant: "golden", rows: 60, streams: 2 }],
    [
      "segment-v1.parquet",
      { kind: "segment", filters: "none", digests: "none", rowSets: "none", fields: "none" },
    ],
    [
      "segment-v1-fields.parquet",
      { kind: "segment", rows: 60, fields: "4 columns in 1 blocks, 2 rows left to parsers" },
    ],
    [
      "segment-v1-sets.parquet",
      { kind: "segment", rows: 90, rowSets: expect.stringMatching(/^4 texts, \d+ bytes$/) },
    ],
    ["wal-v1.bin", { kind: "write-ahead log", records: 5, rows: 12, damaged: 0 }],
    ["day-v1.day", { kind: "day index", generation: 42, segments: 2, replaced: 1, gone: 1 }],
  ])("tells what is in %s", async (name, wanted) => {
    const { code, out } = await run("inspect", golden(name), "-json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject(wanted);
    const text = await run("inspect", golden(name));
    expect(text.out).toContain(`${name}: ${wanted.kind}\n`);
  });

  it("accounts for every byte of a segment", async () => {
    const { out } = await run("inspect", golden("segment-v1-levels.parquet"), "-json");
    const { parts, columns, storedBytes } = JSON.parse(out);
    const sum = (rows: { storedBytes: number }[]) =>
      rows.reduce((total, row) => total + row.storedBytes, 0);
    expect(sum(parts)).toBe(storedBytes);
    expect(sum(columns)).toBe(parts[0].storedBytes);
  });

  it("lists streams and blocks when asked", async () => {
    const path = golden("segment-v1-levels.parquet");
    const { out } = await run("inspect", path, "-streams", "--blocks", "-json");
    const { streamList, blockList } = JSON.parse(out);
    expect(streamList).toMatchObject([
      { rows: 50, labels: '{app="api"}' },
      { rows: 10, labels: '{app="web"}' },
    ]);
    expect(blockList).toMatchObject([{ block: 0, rows: 60, streams: 2 }]);
  });

  it("tells where a log is damaged", async () => {
    const { code, out } = await run("inspect", damaged("wal-v1.bin", 200), "-json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ damaged: 1, damage: [{ kind: "corrupt" }] });
  });

  it("knows delete requests", async () => {
    const body = {
      id: "0123abcd",
      tenant: "t",
      query: '{app="a"}',
      boundsMs: [0, 1],
      createdMs: 5,
    };
    const path = join(directory, "request.json");
    const file = { version: 1, crc32: crc32(Buffer.from(JSON.stringify(body))), body };
    writeFileSync(path, JSON.stringify(file));
    const { out } = await run("inspect", path);
    expect(out).toMatch(/delete request\n {2}id +0123abcd\n/);
    writeFileSync(path, JSON.stringify({ ...file, crc32: 1 }));
    expect(await run("inspect", path)).toMatchObject({ code: 1, out: "" });
  });

  it.each([
    ["a damaged segment", () => damaged("segment-v1-levels.parquet", 1839), 1, /levels\.parquet/],
    ["what is none of Skald's", () => golden("README.md"), 1, /no file of Skald/],
    ["what is not there", () => join(directory, "none"), 1, /is gone/],
    ["no file", () => "", 2, /missing required argument/],
  ])("refuses %s", async (_case, path, code, text) => {
    const { err, ...result } = await run("inspect", ...[path()].filter(Boolean));
    expect(result).toEqual({ code, out: "" });
    expect(err).toMatch(text);
  });
});

describe("verify", () => {
  const segment = readFileSync(golden("segment-v1-levels.parquet"));
  const baseNs = 20_777n * 86_400_000_000_000n;
  const times = { minNs: baseNs, maxNs: baseNs + 3540n * 1_000_000_000n };
  const key = segmentKey({ tenant: "golden", id: "golden", ...times });
  const dayKey = dayIndexKey({ tenant: "golden", baseNs, generation: 3 });
  const put = (name: string, bytes: Uint8Array) => bucket.store.put(name, bytes, { signal });
  const putDay = (changes: object, streams = ['{app="api"}', '{app="web"}']) => {
    const edit = new DayEdit({ tenant: "golden", baseNs });
    const counts = { sizeBytes: segment.length, rows: 60, lineBytes: 1010, level: 0 };
    edit.add({ id: "golden", ...times, ...counts, ...changes }, streams);
    return put(dayKey, edit.encode({ generation: 3, writtenMs: 5 }));
  };
  beforeEach(async () => {
    bucket.store = new MemoryStore();
    await put(key, segment);
    await putDay({});
  });
  const verify = async () => {
    const { code, out } = await run("verify", "s3://logs/folder", "-s3.endpoint=x", "-json");
    return { code, ...(JSON.parse(out) as { damage: object[]; checked: object }) };
  };

  it("finds a whole bucket whole, and hands flags on", async () => {
    const checked = { segment: 1, "day index": 1 };
    expect(await verify()).toMatchObject({ code: 0, damage: [], checked });
    expect(flagsSeen).toEqual(["-s3.endpoint=x"]);
  });

  it.each([
    ["a page", key, 10, "column timestamp, page of block 0"],
    ["the index", key, segment.length - 1000, "index"],
    ["a day index", dayKey, 100, "day index"],
  ])("names %s that is damaged", async (_case, name, at, part) => {
    const bytes = Buffer.from(await bucket.store.get(name, { signal }));
    bytes[at]! ^= 1;
    await put(name, bytes);
    expect(await verify()).toMatchObject({ code: 1, damage: [{ file: name, part }] });
  });

  it.each([
    ["other rows", () => putDay({ rows: 61 }), { file: key, part: "day index" }],
    ["other streams", () => putDay({}, ['{app="api"}']), { file: key, part: "day index" }],
    [
      "a segment that is not there",
      () => bucket.store.delete(key, { signal }),
      { file: dayKey, message: "segment golden is not there" },
    ],
    [
      "a name that is another segment's",
      async () => {
        await bucket.store.delete(dayKey, { signal });
        await bucket.store.delete(key, { signal });
        await put(segmentKey({ tenant: "other", id: "golden", ...times }), segment);
      },
      { part: "name" },
    ],
  ])("tells of %s", async (_case, change, wanted) => {
    await change();
    expect(await verify()).toMatchObject({ code: 1, damage: [wanted] });
  });

  it("takes no flags of a bucket for a directory", async () => {
    expect(await run("verify", directory, "-s3.endpoint=x")).toMatchObject({ code: 2, out: "" });
    expect(await run("verify", join(directory, "none"))).toMatchObject({ code: 2, out: "" });
  });
});
