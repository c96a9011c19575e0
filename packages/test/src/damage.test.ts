import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  getJson,
  nowNs,
  pushJson,
  type QueryAnswer,
  queryLines,
  queryNumber,
  readMetric,
} from "./testing/client.js";
import {
  filesBelow,
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
} from "./testing/server.js";

afterAll(removeFolders);

const keepLog = ["-ingester.flush-on-shutdown=false"];

/** Sends one push for each line, in order. */
async function pushLines(server: TestServer, app: string, lines: readonly string[]): Promise<void> {
  // The clock may step back between two pushes, but the test checks the order of the lines.
  const start = BigInt(nowNs());
  for (const [i, line] of lines.entries())
    expect(await pushJson(server.url, { app }, [[String(start + BigInt(i)), line]])).toBe(204);
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `line ${i}`);

/** The newest file of the write-ahead log. */
function lastLog(folder: string): string {
  const files = filesBelow(join(folder, "wal"), ".wal");
  return join(folder, "wal", files.at(-1) as string);
}

/** Flips one bit of a file. */
function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
}

/** Copies the folder of a stopped process. */
function copyFolder(folder: string): string {
  const copy = makeFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

describe("a log of twenty lines, each its own record", () => {
  // Each test continues with the folder of the test before it.
  const folder = makeFolder();
  beforeAll(async () => {
    const server = await startServer(folder, keepLog);
    await pushLines(server, "a", numbered(20));
    await server.kill("SIGKILL");
  });

  const corruptions = "loki_ingester_wal_corruptions_total";

  it("that ends with half a record is cut, reported and counted; the rest is there", async () => {
    const path = lastLog(folder);
    truncateSync(path, statSync(path).size - 20);
    const server = await startServer(folder, keepLog);
    expect(await queryLines(server.url, '{app="a"}')).toEqual(numbered(19));
    expect(server.log()).toMatch(
      /"level":"warn"[^\n]*"msg":"cut an unfinished record off the log"/,
    );
    expect(await readMetric(server.url, corruptions, { type: "torn" })).toBe(1);
    await pushLines(server, "c", ["after"]);
    await server.kill("SIGKILL");
  });

  it("that is damaged in the middle loses one line, which is set aside, reported and counted", async () => {
    const [first] = filesBelow(join(folder, "wal"), ".wal");
    const path = join(folder, "wal", first as string);
    flip(path, Math.floor(statSync(path).size / 2));
    const second = await startServer(folder, keepLog);
    const found = await queryLines(second.url, '{app="a"}');
    const missing = numbered(19).filter((line) => !found.includes(line));
    expect(missing).toHaveLength(1);
    expect(missing[0]).not.toBe("line 18");
    expect(found).toHaveLength(18);
    // A log that was cut and then written to again is whole.
    expect(await queryLines(second.url, '{app="c"}')).toEqual(["after"]);
    expect(await readMetric(second.url, corruptions, { type: "torn" })).toBe(0);
    expect(filesBelow(join(folder, "wal"), ".corrupt")).toHaveLength(1);
    expect(second.log()).toMatch(/"level":"error"[^\n]*"msg":"the write-ahead log is damaged/);
    const labels = { type: "corrupt" };
    expect(await readMetric(second.url, corruptions, labels)).toBe(1);
    await pushLines(second, "b", ["goes on"]);
    expect(await queryLines(second.url, '{app="b"}')).toEqual(["goes on"]);
    await second.kill("SIGKILL");

    const third = await startServer(folder, keepLog);
    expect(await queryLines(third.url, '{app="a"}')).toEqual(found);
    expect(await readMetric(third.url, "loki_ingester_wal_corruptions_total")).toBe(0);
    await third.kill("SIGKILL");
  });
});

const damages: [string, (good: Buffer) => Uint8Array | string][] = [
  ["short", (good) => good.subarray(0, -100)],
  ["empty", () => ""],
  ["foreign", () => "hello".repeat(1000)],
  ["whole-but-for-its-lines", (good) => good.fill(0xff, 4, good.length >> 1)],
];
const as = (tenant: string) => ({ "x-scope-orgid": tenant });
const wanted = [...numbered(50).map((l) => `old ${l}`), ...numbered(50).map((l) => `new ${l}`)];

/** Replaces a segment by a damaged file. The old file stays as it is, because the store may have a hard link to it. */
function replace(path: string, damage: (good: Buffer) => Uint8Array | string): void {
  const bytes = damage(readFileSync(path));
  rmSync(path);
  writeFileSync(path, bytes);
}

/** Each tenant is named after a kind of damage, which its first segment gets; `folderOf` gives the folder of its segments. */
function damageSegments(folderOf: (tenant: string) => string): void {
  for (const [tenant, damage] of damages) {
    const [path] = filesBelow(folderOf(tenant), ".parquet");
    replace(join(folderOf(tenant), path as string), damage);
  }
}

describe("segments", () => {
  const flags = ["-auth.enabled=true", ...keepLog];
  let folder: string;

  /** A stopped process has two segments of each tenant, on the local disk and in the store. */
  beforeAll(async () => {
    folder = makeFolder();
    const server = await startServer(folder, flags);
    for (const part of ["old", "new"]) {
      for (const tenant of ["good", ...damages.map(([name]) => name)]) {
        const values = numbered(50).map((line, i) => [nowNs(i), `${part} ${line}`] as const);
        expect(await pushJson(server.url, { app: "x", part }, values, as(tenant))).toBe(204);
      }
      expect((await fetch(`${server.url}/flush`, { method: "POST" })).status).toBe(204);
    }
    expect(await server.kill("SIGTERM")).toBe(0);
  });

  describe("of the local disk", () => {
    let server: TestServer;
    beforeAll(async () => {
      const copy = copyFolder(folder);
      damageSegments((tenant) => join(copy, "ingester", "segments", tenant));
      server = await startServer(copy, flags);
    });
    afterAll(() => server.kill("SIGTERM"));

    it.each(["good", ...damages.map(([name]) => name)])(
      "are never served when damaged; the copy of the store is: %s",
      async (tenant) => {
        expect(await queryLines(server.url, '{app="x"}', {}, as(tenant))).toEqual(wanted);
      },
    );

    it("are counted and told of when damaged", async () => {
      const counted =
        (await readMetric(server.url, "loki_ingester_corrupt_segments_total")) +
        (await readMetric(server.url, "loki_querier_corrupt_segments_total"));
      expect(counted).toBe(damages.length);
      for (const [tenant] of damages)
        expect(server.log()).toMatch(new RegExp(`"level":"error"[^\\n]*\\b${tenant}\\b`));
    });
  });

  describe("of the store", () => {
    let server: TestServer;
    const folderOf = ({ folder: of }: TestServer) => join(of, "chunks", "tenant=good");
    beforeAll(async () => {
      const copy = copyFolder(folder);
      for (const name of ["ingester", "wal"]) rmSync(join(copy, name), { recursive: true });
      damageSegments((tenant) => join(copy, "chunks", `tenant=${tenant}`));
      server = await startServer(copy, flags);
    });
    afterAll(() => server.kill("SIGTERM"));

    it.each(damages)(
      "are left out of every query when damaged, which the answer tells: %s",
      async (tenant) => {
        const params = { query: '{app="x"}', limit: "1000" };
        for (let i = 0; i < 3; i++) {
          const answer = await getJson<QueryAnswer>(
            server.url,
            "/loki/api/v1/query_range",
            params,
            as(tenant),
          );
          expect(answer.warnings).toEqual([
            expect.stringMatching(/^rows are missing: damaged segments were left out: /),
          ]);
          const found = await queryLines(server.url, '{app="x"}', {}, as(tenant));
          expect(found).toEqual(wanted.slice(50));
        }
        const count = "sum(count_over_time({app=`x`} |= `line` [1h]))";
        expect(await queryNumber(server.url, count, as(tenant))).toBe(50);
        const parts = await getJson<{ data: string[] }>(
          server.url,
          "/loki/api/v1/label/part/values",
          {},
          as(tenant),
        );
        expect(parts.data).toContain("new");
      },
    );

    it("of other tenants are served; each damaged one is counted and told of once", async () => {
      expect(await queryLines(server.url, '{app="x"}', {}, as("good"))).toEqual(wanted);
      const counted = await readMetric(server.url, "loki_querier_corrupt_segments_total");
      expect(counted).toBe(damages.length);
      expect(server.log().match(/"level":"error"/g)).toHaveLength(damages.length);
    });

    it("are never altered when the damage comes after they were read, and the log says why", async () => {
      const path = join(folderOf(server), filesBelow(folderOf(server), ".parquet")[0] as string);
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0xff, 4, bytes.length >> 1));
      for (let i = 0; i < 15; i++) {
        const count = 'sum(count_over_time({app="x"} |~ "line" [1h]))';
        expect(await queryNumber(server.url, count, as("good"))).toBe(wanted.length - 50);
        // A thread may have the block of a small query in memory, as it was.
        const found = await queryLines(server.url, '{app="x"}', {}, as("good"));
        expect([wanted, wanted.slice(50)]).toContainEqual(found);
      }
      expect(server.log()).toMatch(
        /"reason":"[^"]*the page of [\w.]+, block 0, at byte \d+ does not match its checksum: expected[^\n]*"msg":"a segment is damaged; queries leave it out"/,
      );
    });
  });
});
