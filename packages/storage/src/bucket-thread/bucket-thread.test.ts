import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { S3Server } from "@skald/testkit";
import { type BucketReport, BucketThread } from "./bucket-thread.js";

const directory = mkdtempSync(join(tmpdir(), "skald-bucket-thread-"));
const server = new S3Server();
const { signal } = new AbortController();
const reports: BucketReport[] = [];
let thread: BucketThread;
beforeAll(async () => {
  const endpoint = await server.open();
  thread = new BucketThread({
    url: new URL("./testing/worker.js", import.meta.url),
    place: {
      bucket: {
        ...{ bucket: server.bucket, region: "us-east-1", endpoint, pathStyle: true },
        credentials: { accessKeyId: server.accessKeyId, secretAccessKey: "secret" },
        retry: { minBackoffMs: 1, maxBackoffMs: 1, maxRetries: 1 },
      },
      caFile: "",
      cache: { directory: join(directory, "cache"), storeName: "test", maxBytes: 100_000 },
    },
    onReport: (report) => reports.push(report),
    onThreadLost: (error) => {
      throw error;
    },
  });
  await thread.open();
});
beforeEach(() => {
  server.clear();
  reports.length = 0;
});
afterAll(async () => {
  await thread.close();
  await server.close();
  rmSync(directory, { recursive: true });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

it("is an object store", async () => {
  const path = join(directory, "file");
  writeFileSync(path, "from a file");
  expect(await thread.putFile("a/1", path, { signal, ifAbsent: true })).toBe("stored");
  expect(await thread.put("a/1", Buffer.from("other"), { signal, ifAbsent: true })).toBe("exists");
  expect(await thread.put("b", Buffer.from("b"), { signal })).toBe("stored");
  expect(Buffer.from(await thread.get("a/1", { signal })).toString()).toBe("from a file");
  const range = await thread.getRange("a/1", { offset: 5, length: 1 }, { signal });
  expect(Buffer.from(range).toString()).toBe("a");
  const listed = await all(thread.list("", { signal }));
  expect(listed.map(({ key }) => key)).toEqual(["a/1", "b"]);
  expect(await thread.stat("a/1", { signal })).toEqual(listed[0]);
  expect(await all(thread.list("", { signal, after: "a/1" }))).toHaveLength(1);
  expect(await all(thread.folders("", { signal }))).toEqual(["a/"]);
  await thread.delete("b", { signal });
  const gone = await thread.get("b", { signal }).catch(errorCodeOf);
  expect(gone).toBe("not_found");
});

it("tells what it asked, and when to ask again", async () => {
  server.faults.push({ fault: { kind: "status", status: 503, code: "SlowDown", retryAfter: 7 } });
  const failure = await thread.stat("a", { signal }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "unavailable", retryAfterSeconds: 7 });
  const tries = reports.flatMap((report) => report.tries);
  expect(tries).toMatchObject([{ operation: "attributes", status: 503, failed: true }]);
});

it("gives a request up that nobody waits for", async () => {
  server.faults.push({ fault: { kind: "hang" } });
  const abort = new AbortController();
  const call = thread.get("a", { signal: abort.signal }).catch(errorCodeOf);
  while (server.seen.length === 0) await new Promise(setImmediate);
  abort.abort();
  expect(await call).toBe("cancelled");
});

it("keeps what was fetched, as long as it is held", async () => {
  const names = ["x", "y"].map((key) => ({ key, sizeBytes: 70_000 }));
  for (const { key, sizeBytes } of names)
    await thread.put(key, Buffer.alloc(sizeBytes, key), { signal });
  const [x, y] = names as [{ key: string; sizeBytes: number }, { key: string; sizeBytes: number }];
  const first = await thread.hold([x]);
  const slots = new Uint8Array(first.objects[0]?.slots as SharedArrayBuffer);
  expect([...slots]).toEqual([0, 0]);
  const fetched = await thread.fetch([{ key: "x", from: 0, to: 2 }], signal);
  expect(fetched).toEqual({ requests: 1, slots: 2, bytes: 70_000 });
  expect([...slots]).toEqual([1, 1]);
  const path = first.objects[0]?.path as string;
  expect(existsSync(path)).toBe(true);
  first.release();
  const second = await thread.hold([y]);
  await thread.fetch([{ key: "y", from: 0, to: 2 }], signal);
  second.release();
  expect(existsSync(path)).toBe(false);
  expect(reports.flatMap(({ dropped }) => dropped)).toEqual([path]);
});
