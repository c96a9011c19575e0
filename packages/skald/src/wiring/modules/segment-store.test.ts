import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type SegmentRef, unavailable } from "@skald/model";
import { MemoryStore, segmentKey } from "@skald/storage";
import { segmentStore } from "./ingester.js";

const { signal } = new AbortController();
let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skald-segment-store-"));
  path = join(folder, "x.parquet");
  writeFileSync(path, "12345");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function makeRef(ref: Partial<SegmentRef> = {}): SegmentRef {
  const location = { kind: "file", path } as const;
  return {
    kind: "segment",
    id: "s-1",
    tenant: "t",
    minNs: 5n,
    maxNs: 9n,
    location,
    sizeBytes: 5,
    ...ref,
  };
}

describe("segmentStore", () => {
  it("stores a file under the key of its segment, once", async () => {
    const store = new MemoryStore();
    const segments = segmentStore(store);
    expect(await segments.has(makeRef(), { signal })).toBe(false);
    await segments.put(makeRef(), path, { signal });
    writeFileSync(path, "other");
    await segments.put(makeRef(), path, { signal });
    const bytes = await store.get(segmentKey(makeRef()), { signal });
    expect(Buffer.from(bytes).toString()).toBe("12345");
    expect(await segments.has(makeRef(), { signal })).toBe(true);
  });

  it("looks at nothing but the object itself, and tells when the store does not answer", async () => {
    const store = new MemoryStore();
    const list = () => {
      throw new Error("a listing of a tenant with many segments takes long");
    };
    const listless = Object.assign(store, { list });
    const segments = segmentStore(listless);
    await segments.put(makeRef(), path, { signal });
    expect(await segments.has(makeRef(), { signal })).toBe(true);
    listless.stat = () => Promise.reject(unavailable("no answer"));
    await expect(segments.has(makeRef(), { signal })).rejects.toThrow("no answer");
  });

  it("does not take another segment, or half of one, for it", async () => {
    const segments = segmentStore(new MemoryStore());
    await segments.put(makeRef(), path, { signal });
    for (const other of [{ sizeBytes: 6 }, { id: "s-2" }, { tenant: "u" }, { maxNs: 10n }])
      expect(await segments.has(makeRef(other), { signal })).toBe(false);
  });
});
