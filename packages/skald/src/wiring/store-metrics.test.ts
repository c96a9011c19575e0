import { describe, expect, it } from "@jest/globals";
import { notFound, unavailable } from "@skald/model";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore } from "@skald/storage";
import { countedStore, timedCatalog } from "./store-metrics.js";

const { signal } = new AbortController();

/** The samples of a metric, without its buckets. */
async function samples(metrics: Metrics, name: string): Promise<string[]> {
  const { text } = await metrics.read();
  const lines = text.split("\n").filter((line) => line.startsWith(name));
  return lines.filter((line) => !/_bucket\{le|_sum/.test(line)).sort();
}

describe("countedStore", () => {
  it("counts operations, and as failures only what failed", async () => {
    const metrics = new Metrics();
    const inner = new MemoryStore();
    const store = countedStore(inner, metrics);
    await store.put("a/b", Buffer.from("xyz"), { signal });
    expect(Buffer.from(await store.get("a/b", { signal })).toString()).toBe("xyz");
    const found: string[] = [];
    for await (const { key } of store.list("a", { signal })) found.push(key);
    expect(found).toEqual(["a/b"]);
    await expect(store.stat("none", { signal })).rejects.toThrow();
    inner.delete = () => Promise.reject(unavailable("down"));
    await expect(store.delete("a/b", { signal })).rejects.toThrow("down");
    expect(await samples(metrics, "loki_objstore_bucket_operation")).toEqual([
      'loki_objstore_bucket_operation_duration_seconds_count{bucket="filesystem",operation="get"} 1',
      'loki_objstore_bucket_operation_duration_seconds_count{bucket="filesystem",operation="iter"} 1',
      'loki_objstore_bucket_operation_duration_seconds_count{bucket="filesystem",operation="upload"} 1',
      'loki_objstore_bucket_operation_failures_total{bucket="filesystem",operation="attributes"} 0',
      'loki_objstore_bucket_operation_failures_total{bucket="filesystem",operation="delete"} 1',
      'loki_objstore_bucket_operation_failures_total{bucket="filesystem",operation="get"} 0',
      'loki_objstore_bucket_operation_failures_total{bucket="filesystem",operation="iter"} 0',
      'loki_objstore_bucket_operation_failures_total{bucket="filesystem",operation="upload"} 0',
      'loki_objstore_bucket_operations_total{bucket="filesystem",operation="attributes"} 1',
      'loki_objstore_bucket_operations_total{bucket="filesystem",operation="delete"} 1',
      'loki_objstore_bucket_operations_total{bucket="filesystem",operation="get"} 1',
      'loki_objstore_bucket_operations_total{bucket="filesystem",operation="iter"} 1',
      'loki_objstore_bucket_operations_total{bucket="filesystem",operation="upload"} 1',
    ]);
  });

  it("counts what was stored before", async () => {
    const metrics = new Metrics();
    const inner = new MemoryStore();
    inner.putFile = () => Promise.resolve("exists");
    await countedStore(inner, metrics).putFile("a", "x", { signal, ifAbsent: true });
    expect(await samples(metrics, "loki_chunk_store_deduped")).toEqual([
      "loki_chunk_store_deduped_chunks_total 1",
    ]);
  });
});

describe("timedCatalog", () => {
  it("times by outcome", async () => {
    const metrics = new Metrics();
    const list = (fails: boolean) => () =>
      fails ? Promise.reject(notFound("gone")) : Promise.resolve([]);
    const request = { tenant: "t", fromNs: 0n, toNs: 1n };
    const count = async () => ({ segments: [], counted: [], countedSegments: 0 });
    await timedCatalog({ list: list(false), count }, metrics).list(request, { signal });
    await expect(
      timedCatalog({ list: list(true), count }, metrics).list(request, { signal }),
    ).rejects.toThrow();
    expect(await samples(metrics, "loki_index_request_duration_seconds")).toEqual([
      'loki_index_request_duration_seconds_count{operation="chunk_refs",status_code="200"} 1',
      'loki_index_request_duration_seconds_count{operation="chunk_refs",status_code="404"} 1',
    ]);
  });
});
