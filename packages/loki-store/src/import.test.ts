import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { MemoryStore, type ObjectStore } from "@skald/storage";
import { importLokiStore, type LokiImportOptions } from "./import.js";
import { importChunks } from "./jobs.js";
import {
  answersOf,
  openStore,
  rowsIn,
  rowText,
  storeNames,
  type TestStore,
} from "./testing/stores.js";

const { signal } = new AbortController();
const always = { fromNs: 0n, toNs: 1n << 62n };
const noonNs = 1_795_089_600_000_000_000n;
const dayNs = 86_400_000_000_000n;
/** A row that none of the answers has. */
const probe = rowText({ probe: "x" }, noonNs, "probe", {});

function importInto(
  target: ObjectStore,
  source: TestStore,
  changes: Partial<LokiImportOptions> = {},
) {
  const run: LokiImportOptions["run"] = async (job) => importChunks(job);
  return importLokiStore({
    source,
    target,
    tenants: [],
    range: always,
    parallel: 2,
    run,
    signal,
    ...changes,
  });
}

async function keysOf(store: MemoryStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("", { signal })) keys.push(key);
  return keys;
}

/** The name of a chunk's object, and the bytes of the chunk in it. */
function someChunk({ files }: TestStore): { name: string; bytes: Uint8Array } {
  const [name, bytes] = [...files].find(([file]) => !file.startsWith("index/"))!;
  return { name, bytes: Uint8Array.from(bytes) };
}

describe("importing a store of Loki", () => {
  it.each(storeNames)("gives the rows that Loki answered, and no others: %s", async (name) => {
    const target = new MemoryStore();
    const { failed, rows } = await importInto(target, openStore(name));
    expect(failed).toEqual([]);
    const wanted = [...answersOf(name), probe].sort();
    expect(await rowsIn(target)).toEqual(wanted);
    expect(rows).toBe(wanted.length);
  });

  it("adds nothing when it is repeated", async () => {
    const target = new MemoryStore();
    const source = openStore("gzip");
    const first = await importInto(target, source);
    const keys = await keysOf(target);
    const { segments, chunksBefore } = await importInto(target, source);
    expect({ segments, chunksBefore }).toEqual({ segments: 0, chunksBefore: first.chunks });
    expect(await keysOf(target)).toEqual(keys);
  });

  it("takes chunks that came since the last time", async () => {
    const target = new MemoryStore();
    const source = openStore("zstd-compacted");
    const indexes = [...source.files].filter(([name]) => name.startsWith("index/index_20779/"));
    for (const [name] of indexes) source.files.delete(name);
    const { chunks } = await importInto(target, source);
    for (const [name, bytes] of indexes) source.files.set(name, bytes);
    const again = await importInto(target, source);
    expect(again.chunksBefore).toBe(chunks);
    expect(await rowsIn(target)).toEqual([...answersOf("zstd-compacted"), probe].sort());
  });

  it("opens a bounded number of chunks at a time", async () => {
    const source = openStore("gzip");
    const open = source.open.bind(source);
    let [opening, mostOpening] = [0, 0];
    source.open = async (name) => {
      mostOpening = Math.max(mostOpening, ++opening);
      await Promise.resolve();
      return open(name).finally(() => opening--);
    };
    await importInto(new MemoryStore(), source, { parallel: 1 });
    expect(mostOpening).toBe(32);
  });

  it("goes on where it ended, whatever write it ended at", async () => {
    const source = openStore("lz4");
    const whole = new MemoryStore();
    await importInto(whole, source);
    const target = new MemoryStore();
    let ends = 0;
    for (let writes = 1; ; writes = writes === 3 ? 1 : writes + 1) {
      try {
        await importInto(endingStore(target, writes), source, { parallel: 1 });
        break;
      } catch (error) {
        expect(String(error)).toContain("the process ended");
        ends++;
      }
    }
    expect(ends).toBeGreaterThan(4);
    expect(await keysOf(target)).toEqual(await keysOf(whole));
    expect(await rowsIn(target)).toEqual(await rowsIn(whole));
  });

  it("takes the tenants and the range that are asked for", async () => {
    const none = new MemoryStore();
    expect((await importInto(none, openStore("flate"), { tenants: ["other"] })).chunks).toBe(0);
    const [fromNs, toNs] = [noonNs + dayNs / 3n, noonNs + dayNs];
    const target = new MemoryStore();
    await importInto(target, openStore("flate"), { tenants: ["shop"], range: { fromNs, toNs } });
    const wanted = answersOf("flate").filter((row) => {
      const ns = BigInt((JSON.parse(row) as string[])[1]!);
      return ns >= fromNs && ns < toNs;
    });
    expect(wanted.length).toBeGreaterThan(100);
    expect(await rowsIn(target)).toEqual(wanted);
    await importInto(target, openStore("flate"));
    expect([...new Set(await rowsIn(target))]).toEqual([...answersOf("flate"), probe].sort());
  });

  it("reads chunks whose names are not encoded, as a bucket has them", async () => {
    const source = openStore("none-legacy");
    for (const [name, bytes] of [...source.files]) {
      if (name.startsWith("index/")) continue;
      source.files.delete(name);
      const at = name.lastIndexOf("/") + 1;
      const plain = Buffer.from(name.slice(at), "base64").toString();
      source.files.set(name.slice(0, at) + plain, bytes);
    }
    const { failed, rows } = await importInto(new MemoryStore(), source);
    expect({ failed, rows }).toEqual({ failed: [], rows: answersOf("none-legacy").length + 1 });
  });

  it.each([
    [
      "that is damaged",
      (store: TestStore, name: string, bytes: Uint8Array) => {
        bytes[bytes.length >> 1]! ^= 1;
        store.files.set(name, bytes);
      },
      /is damaged: the checksum at byte \d+ is wrong/,
    ],
    [
      "that is cut short",
      (store: TestStore, name: string, bytes: Uint8Array) =>
        store.files.set(name, bytes.subarray(0, 300)),
      /is damaged: it ends too early/,
    ],
    [
      "that is gone",
      (store: TestStore, name: string) => store.files.delete(name),
      /is not in the store/,
    ],
    [
      "of another schema",
      (store: TestStore, name: string, bytes: Uint8Array) => {
        bytes[Buffer.from(bytes).indexOf(Buffer.from("012ee56a", "hex")) + 4] = 3;
        store.files.set(name, bytes);
      },
      /chunk format 3; only schema v13 is read/,
    ],
    [
      "of an unknown encoding",
      (store: TestStore, name: string, bytes: Uint8Array) => {
        bytes[Buffer.from(bytes).indexOf(Buffer.from("012ee56a", "hex")) + 5] = 77;
        store.files.set(name, bytes);
      },
      /chunk encoding 77 is not known/,
    ],
  ])("names a chunk %s, and takes it later", async (_, harm, text) => {
    const source = openStore("snappy-legacy");
    const { name, bytes } = someChunk(source);
    const good = Uint8Array.from(bytes);
    harm(source, name, bytes);
    const target = new MemoryStore();
    const { failed } = await importInto(target, source);
    expect(failed.length).toBeGreaterThan(0);
    for (const { error } of failed) expect(error).toMatch(text);
    source.files.set(name, good);
    expect((await importInto(target, source)).failed).toEqual([]);
    expect(await rowsIn(target)).toEqual([...answersOf("snappy-legacy"), probe].sort());
  });

  it.each([
    [
      "no index",
      (files: Map<string, Uint8Array>) => {
        for (const name of files.keys()) if (name.startsWith("index/")) files.delete(name);
      },
      "the source has no index files",
    ],
    [
      "a BoltDB index",
      (files: Map<string, Uint8Array>) =>
        files.set("index/index_20779/ingester-0-1795419049.gz", new Uint8Array(9)),
      "only schema v13 with `store: tsdb` is read",
    ],
    [
      "an older TSDB index",
      changeIndex((index) => index.writeUInt8(2, 4)),
      "TSDB index of version 2; only schema v13 is read",
    ],
    [
      "a damaged index",
      changeIndex((index) => index.writeUInt8(1, index.length - 13)),
      "is damaged: the checksum of its contents is wrong",
    ],
    [
      "damaged series",
      changeIndex((index) => index.writeUInt8(index[130]! ^ 1, 130)),
      "is damaged: the checksum of a series",
    ],
  ])("refuses a source with %s by name", async (_, change, text) => {
    const source = openStore("gzip");
    change(source.files);
    const target = new MemoryStore();
    await expect(importInto(target, source)).rejects.toThrow(text);
    expect(await keysOf(target)).toEqual([]);
  });
});

/** Changes the first index file of a store. */
function changeIndex(change: (index: Buffer) => void): (files: Map<string, Uint8Array>) => void {
  return (files) => {
    const name = [...files.keys()].sort().find((one) => one.startsWith("index/"))!;
    const index = gunzipSync(files.get(name)!);
    change(index);
    files.set(name, gzipSync(index));
  };
}

/** A store that the process ends at, at one of its writes. */
function endingStore(store: MemoryStore, writes: number): ObjectStore {
  let left = writes;
  const count = () => {
    if (left-- === 0) throw new Error("the process ended");
  };
  return new Proxy(store, {
    get(target, name: keyof ObjectStore) {
      const method = (target[name] as (...args: unknown[]) => unknown).bind(target);
      if (name !== "put" && name !== "putFile") return method;
      return async (...args: unknown[]) => {
        count();
        return method(...args);
      };
    },
  });
}
