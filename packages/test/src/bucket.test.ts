import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, it } from "@jest/globals";
import { S3Server } from "@skald/testkit";
import { nowNs, pushJson, queryLines, readMetric } from "./testing/client.js";
import { filesBelow, makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

let bucket: S3Server;
beforeEach(async () => {
  bucket = new S3Server();
  await bucket.open();
});
afterEach(() => bucket.close());
afterAll(removeFolders);

const flags = () => [
  `-s3.url=s3://${bucket.accessKeyId}:secret@${bucket.url.slice("http://".length)}/${bucket.bucket}`,
  "-s3.force-path-style",
  "-s3.insecure",
  "-s3.max-retries=1",
  "-s3.http.timeout=2s",
];
const start = (folder: string) => startServer(folder, flags());
const flush = async (url: string) => (await fetch(`${url}/flush`, { method: "POST" })).status;
const hourAgo = (minutes: number) => String(BigInt(nowNs()) - BigInt(minutes) * 60_000_000_000n);

it("keeps segments in a bucket, where a process with an empty disk finds everything", async () => {
  const folder = makeFolder();
  const first = await start(folder);
  const rowOf = new Map(["a", "b"].map((app) => [app, [nowNs(), `of ${app}`] as const]));
  for (const [app, row] of rowOf) expect(await pushJson(first.url, { app }, [row])).toBe(204);
  expect(await flush(first.url)).toBe(204);
  expect(bucket.keys).toHaveLength(1);
  expect(bucket.keys[0]).toMatch(/^tenant=fake\/date=[\d-]+\/\d+-\d+-.*\.parquet$/);
  expect(filesBelow(join(folder, "chunks"), "")).toEqual([]);
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(), "later"]])).toBe(204);
  expect(await flush(first.url)).toBe(204);
  expect(await first.kill("SIGTERM")).toBe(0);

  const empty = makeFolder();
  const second = await start(empty);
  expect(await queryLines(second.url, '{app=~".+"}')).toEqual(["of a", "of b", "later"]);
  const gets = () => bucket.seen.filter(({ method, key }) => method === "GET" && key !== "").length;
  const cold = gets();
  expect(cold).toBe(2);
  expect(await queryLines(second.url, '{app=~".+"} |= "late"')).toEqual(["later"]);
  const count = `${second.url}/loki/api/v1/query?query=sum(count_over_time({app="a"}[1h]))`;
  expect(await (await fetch(count)).text()).toContain('"2"');
  expect(gets()).toBe(cold);
  expect(
    await readMetric(second.url, "loki_objstore_bucket_operations_total", {
      operation: "get_range",
    }),
  ).toBe(cold);
  expect(await second.kill("SIGTERM")).toBe(0);

  // The next process has what this one fetched, and fetches again what the disk lost.
  const third = await start(empty);
  expect(await queryLines(third.url, '{app=~".+"}')).toEqual(["of a", "of b", "later"]);
  expect(gets()).toBe(cold);
  expect(await third.kill("SIGKILL")).toBe("SIGKILL");
  rmSync(join(empty, "segment-cache"), { recursive: true });
  const fourth = await start(empty);
  expect(await queryLines(fourth.url, '{app=~".+"}')).toEqual(["of a", "of b", "later"]);
  expect(gets()).toBe(2 * cold);
  // An agent retries a push whose row is already in the bucket: the row counts once.
  expect(
    await pushJson(fourth.url, { app: "a" }, [rowOf.get("a") as readonly [string, string]]),
  ).toBe(204);
  expect(await queryLines(fourth.url, '{app=~".+"}')).toEqual(["of a", "of b", "later"]);
  expect(await fourth.kill("SIGTERM")).toBe(0);
});

it("goes on without the bucket: pushes and recent rows as usual, old ones 503, and all is uploaded later", async () => {
  const folder = makeFolder();
  const before = await start(folder);
  expect(await pushJson(before.url, { app: "a" }, [[hourAgo(50), "old"]])).toBe(204);
  expect(await flush(before.url)).toBe(204);
  expect(await before.kill("SIGTERM")).toBe(0);
  const server = await start(makeFolder());
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "recent"]])).toBe(204);

  expect(await queryLines(server.url, '{app="a"}', { start: hourAgo(1) })).toEqual(["recent"]);

  bucket.faults.push({ fault: { kind: "status", status: 503, code: "SlowDown", retryAfter: 2 } });
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "more"]])).toBe(204);
  const old = await fetch(
    `${server.url}/loki/api/v1/query_range?query={app="a"}&start=${hourAgo(55)}&end=${hourAgo(45)}`,
  );
  expect(old.status).toBe(503);
  expect(old.headers.get("retry-after")).toBe("2");
  expect(await old.text()).toContain("cannot be reached in s3://logs/");
  expect(await queryLines(server.url, '{app="a"}', { start: hourAgo(1) })).toEqual([
    "recent",
    "more",
  ]);
  expect(await flush(server.url)).toBe(503);

  bucket.faults.length = 0;
  expect(await flush(server.url)).toBe(204);
  expect(bucket.keys).toHaveLength(2);
  await waitFor(async () => {
    const lines = await queryLines(server.url, '{app="a"}').catch(() => []);
    return lines.join() === "old,recent,more";
  });
  expect(await server.kill("SIGTERM")).toBe(0);
});
