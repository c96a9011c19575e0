import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import {
  getJson,
  nowNs,
  pushJson,
  type QueryAnswer,
  queryLines,
  queryNumber,
  readMetric,
} from "./client.js";
import { filesBelow, makeFolder, removeFolders, startServer, type TestServer } from "./server.js";

afterAll(removeFolders);

const keepLog = ["-ingester.flush-on-shutdown=false"];

/** Pushes one line each, in order. */
async function pushLines(server: TestServer, app: string, lines: readonly string[]): Promise<void> {
  // The clock may step back between two pushes, and the order of the lines is looked at.
  const start = BigInt(nowNs());
  for (const [i, line] of lines.entries())
    expect(await pushJson(server.url, { app }, [[String(start + BigInt(i)), line]])).toBe(204);
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `line ${i}`);

/** The newest file of the write-ahead log. */
function lastLog(folder: string): string {
  const files = filesBelow(join(folder, "wal"), "").filter((name) => !name.endsWith(".corrupt"));
  return join(folder, "wal", files.at(-1) as string);
}

/** Turns one bit over. */
function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
}

describe("a torn end of the log", () => {
  it.each([
    ["half a record", (path: string) => truncateSync(path, statSync(path).size - 20), 19],
    [
      "what a write left behind",
      (path: string) =>
        writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(9, 7)])),
      20,
    ],
  ])("%s is cut off, reported and counted; the rest is there", async (_name, tear, want) => {
    const folder = makeFolder();
    const first = await startServer(folder, keepLog);
    await pushLines(first, "a", numbered(20));
    await first.kill("SIGKILL");
    tear(lastLog(folder));

    const second = await startServer(folder, keepLog);
    expect(await queryLines(second.url, '{app="a"}')).toEqual(numbered(want));
    expect(second.log()).toMatch(
      /"level":"warn"[^\n]*"msg":"cut an unfinished record off the log"/,
    );
    const corruptions = "loki_ingester_wal_corruptions_total";
    expect(await readMetric(second.url, corruptions, { type: "torn" })).toBe(1);
    await pushLines(second, "a", ["after"]);
    await second.kill("SIGKILL");

    const third = await startServer(folder, keepLog);
    expect(await queryLines(third.url, '{app="a"}')).toEqual([...numbered(want), "after"]);
    expect(await readMetric(third.url, corruptions)).toBe(0);
    await third.kill("SIGTERM");
  });
});

describe("a damaged middle of the log", () => {
  it("costs what stands behind it, which is set aside, reported and counted", async () => {
    const folder = makeFolder();
    const first = await startServer(folder, keepLog);
    await pushLines(first, "a", numbered(20));
    await first.kill("SIGKILL");
    const path = lastLog(folder);
    flip(path, Math.floor(statSync(path).size / 2));

    const second = await startServer(folder, keepLog);
    const found = await queryLines(second.url, '{app="a"}');
    expect(found.length).toBeGreaterThan(4);
    expect(found.length).toBeLessThan(16);
    expect(found).toEqual(numbered(found.length));
    expect(existsSync(`${path}.corrupt`)).toBe(true);
    expect(second.log()).toMatch(/"level":"error"[^\n]*"msg":"the write-ahead log is damaged/);
    const labels = { type: "corrupt" };
    expect(await readMetric(second.url, "loki_ingester_wal_corruptions_total", labels)).toBe(1);
    await pushLines(second, "b", ["goes on"]);
    expect(await queryLines(second.url, '{app="b"}')).toEqual(["goes on"]);
    await second.kill("SIGTERM");
  });
});

/** A stopped process whose two segments, of the tenants `a` and `b`, are on the local disk and in the store. */
async function makeSegments(): Promise<{ folder: string; flags: string[] }> {
  const folder = makeFolder();
  const flags = ["-auth.enabled=true", ...keepLog];
  const server = await startServer(folder, flags);
  for (const tenant of ["a", "b"]) {
    for (const part of ["old", "new"]) {
      const values = numbered(50).map((line, i) => [nowNs(i), `${part} ${line}`] as const);
      const headers = { "x-scope-orgid": tenant };
      expect(await pushJson(server.url, { app: "x", part }, values, headers)).toBe(204);
      expect((await fetch(`${server.url}/flush`, { method: "POST" })).status).toBe(204);
    }
  }
  expect(await server.kill("SIGTERM")).toBe(0);
  return { folder, flags };
}

const as = (tenant: string) => ({ "x-scope-orgid": tenant });
const wanted = [...numbered(50).map((l) => `old ${l}`), ...numbered(50).map((l) => `new ${l}`)];

const damages: [string, (good: Buffer) => Uint8Array | string][] = [
  ["cut short", (good) => good.subarray(0, -100)],
  ["emptied", () => ""],
  ["not a segment", () => "hello".repeat(1000)],
  ["whole but for its lines", (good) => good.fill(0xff, 4, good.length >> 1)],
];

/** Puts a damaged file in the place of a segment; the store may have the same file by another link. */
function replace(path: string, damage: (good: Buffer) => Uint8Array | string): void {
  const bytes = damage(readFileSync(path));
  rmSync(path);
  writeFileSync(path, bytes);
}

describe.each(damages)("a local segment that is %s", (_name, damage) => {
  it("is never served; the copy of the store is", async () => {
    const { folder, flags } = await makeSegments();
    const [path] = filesBelow(join(folder, "ingester", "segments", "a"), ".parquet");
    replace(join(folder, "ingester", "segments", "a", path as string), damage);
    const server = await startServer(folder, flags);
    for (const tenant of ["a", "b"])
      expect(await queryLines(server.url, '{app="x"}', {}, as(tenant))).toEqual(wanted);
    const counted =
      (await readMetric(server.url, "loki_ingester_corrupt_segments_total")) +
      (await readMetric(server.url, "loki_querier_corrupt_segments_total"));
    expect(counted).toBe(1);
    expect(server.log()).toMatch(/"level":"error"/);
    await server.kill("SIGTERM");
  });
});

describe.each(damages)("a segment of the store that is %s", (_name, damage) => {
  it("is left out of every query, counted, and told of in the answer", async () => {
    const { folder, flags } = await makeSegments();
    for (const name of ["ingester", "wal"]) rmSync(join(folder, name), { recursive: true });
    const [path] = filesBelow(join(folder, "chunks", "tenant=a"), ".parquet");
    replace(join(folder, "chunks", "tenant=a", path as string), damage);
    const server = await startServer(folder, flags);
    const params = { query: '{app="x"}', limit: "1000" };
    for (let i = 0; i < 3; i++) {
      const answer = await getJson<QueryAnswer>(
        server.url,
        "/loki/api/v1/query_range",
        params,
        as("a"),
      );
      expect(answer.warnings).toEqual([
        expect.stringMatching(/^rows are missing: damaged segments were left out: /),
      ]);
      expect(await queryLines(server.url, '{app="x"}', {}, as("a"))).toEqual(wanted.slice(50));
    }
    const count = "sum(count_over_time({app=`x`} |= `line` [1h]))";
    expect(await queryNumber(server.url, count, as("a"))).toBe(50);
    const parts = await getJson<{ data: string[] }>(
      server.url,
      "/loki/api/v1/label/part/values",
      {},
      as("a"),
    );
    expect(parts.data).toContain("new");
    expect(await queryLines(server.url, '{app="x"}', {}, as("b"))).toEqual(wanted);
    expect(await readMetric(server.url, "loki_querier_corrupt_segments_total")).toBe(1);
    expect(server.log().match(/"level":"error"/g)).toHaveLength(1);
    await server.kill("SIGTERM");
  });
});
