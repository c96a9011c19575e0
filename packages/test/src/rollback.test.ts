import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nowNs, pushJson, queryLines, readMetric } from "./testing/client.js";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  spawnServer,
  startServer,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const flags = [
  "-auth.enabled=true",
  "-pattern-ingester.enabled=true",
  "-ingester.flush-on-shutdown=false",
  "-ingester.tokens-file-path=ingester.tokens",
  "-compactor.retention-enabled",
  "-compactor.delete-request-store=filesystem",
];
const slow = [...flags, "-compactor.compaction-interval=1h"];
const quick = [...flags, "-compactor.compaction-interval=100ms"];
const tenants = ["a", "b"];
const as = (tenant: string) => ({ "x-scope-orgid": tenant });
const range = { limit: "5000", since: "1h" };
const says = /has format version 2, this program knows versions up to 1; nothing was changed/;

const whole = makeFolder();
const wanted: string[] = [];

/** Raises the version of a file, as a later program would write it. No checksum covers the version. */
function raiseVersion(path: string): void {
  const bytes = readFileSync(path);
  const text = bytes.toString("latin1");
  if (/^SKALD(WAL|DAY)/.test(text)) bytes.writeUInt32LE(2, 8);
  else if (text.startsWith("PAR1")) bytes.write("SKALDIX2", text.lastIndexOf("SKALDIX1"));
  else if (path.endsWith("patterns.bin")) bytes.writeUInt32LE(2, 4);
  else if (/"version":1/.test(text)) bytes.write('"version":2', text.indexOf('"version":1'));
  else {
    writeFileSync(path, text.replace("{", '{"version":2,'));
    return;
  }
  // The old file stays as it is, because the store may have a hard link to it.
  rmSync(path);
  writeFileSync(path, bytes);
}

/** The paths and contents of the files below a folder, without files that name a process or the folder. */
function contentsOf(folder: string, kept = /./): ReadonlyMap<string, string> {
  const paths = filesBelow(folder, "").filter(
    (path) => !/lock(\.owner)?$|^store\.json$/.test(path),
  );
  return new Map(
    paths
      .filter((path) => kept.test(path))
      .map((path) => [path, readFileSync(join(folder, path)).toString("base64")]),
  );
}

/** Makes a folder with files of every kind: two segments of each tenant, an index, a delete request, rows in the log, patterns. */
beforeAll(async () => {
  let count = 0;
  const push = async (url: string, rows: number) => {
    for (const tenant of tenants) {
      const values = Array.from(
        { length: rows },
        (_, i) => [nowNs(i), `line ${count + i}`] as const,
      );
      if (tenant === "a") wanted.push(...values.map(([, line]) => line));
      expect(await pushJson(url, { app: "x" }, values, as(tenant))).toBe(204);
    }
    count += rows;
  };
  const flush = async (url: string) =>
    expect((await fetch(`${url}/flush`, { method: "POST" })).status).toBe(204);
  const first = await startServer(whole, quick);
  await push(first.url, 20);
  await flush(first.url);
  await waitFor(() => filesBelow(whole, ".day").length === tenants.length);
  expect(await first.kill("SIGTERM")).toBe(0);

  const second = await startServer(whole, slow);
  await push(second.url, 20);
  await flush(second.url);
  await push(second.url, 500);
  const params = {
    query: '{app="x"} |= "secret"',
    start: String(Math.floor(Date.now() / 1000) - 3600),
  };
  for (const tenant of tenants) {
    const asked = `${second.url}/loki/api/v1/delete?${new URLSearchParams(params)}`;
    expect((await fetch(asked, { method: "POST", headers: as(tenant) })).status).toBe(204);
  }
  expect(await second.kill("SIGTERM")).toBe(0);
});

/** What a process on this folder answers each tenant. */
async function expectAllRows(folder: string): Promise<void> {
  const server = await startServer(folder, slow);
  for (const tenant of tenants)
    expect(await queryLines(server.url, '{app="x"}', range, as(tenant))).toEqual(wanted);
  expect(await server.kill("SIGTERM")).toBe(0);
}

describe("a program that goes back to an older version", () => {
  it.each([
    ["the log", /^wal\/.*\.wal$/],
    ["a local segment", /^ingester\/segments\/a\/.*\.parquet$/],
    ["the patterns", /patterns\.bin$/],
    ["the tokens", /ingester\.tokens$/],
  ])("refuses to start over %s, changes nothing, and loses no row", async (_, kind) => {
    const folder = makeFolder();
    cpSync(whole, folder, { recursive: true });
    const path = join(
      folder,
      filesBelow(folder, "")
        .filter((one) => kind.test(one))
        .at(-1)!,
    );
    const good = readFileSync(path);
    raiseVersion(path);
    const before = contentsOf(folder);
    const refused = spawnServer(folder, slow);
    const hasEnded = () => refused.process.exitCode !== null;
    await waitFor(() => hasEnded() || /"msg":"ready"/.test(refused.log()));
    expect([refused.process.exitCode, await refused.kill("SIGKILL")]).toEqual([1, 1]);
    const told = refused.log().match(/"msg":"could not start: ([^"]*)"/)?.[1];
    expect(told).toMatch(says);
    expect(told).toContain(path.split("/").at(-1));
    expect(contentsOf(folder)).toEqual(before);
    const verified = await runProgram(binSkald, ["verify", folder]);
    if (!path.endsWith(".tokens")) expect(verified).toMatchObject({ code: 2 });
    expect(verified.stdout).not.toMatch(/^damaged/m);
    rmSync(path);
    writeFileSync(path, good);
    await expectAllRows(folder);
  });

  it.each([
    ["a segment", /^chunks\/tenant=a\/.*\.parquet$/],
    ["a day index", /^chunks\/tenant=a\/.*\.day$/],
    ["a delete request", /^chunks\/.*delete_requests\/tenant=a\/.*\.json$/],
  ])("answers 503 over %s of the store, and touches nothing of its tenant", async (_, kind) => {
    const folder = makeFolder();
    cpSync(whole, folder, { recursive: true });
    const paths = filesBelow(folder, "").filter((one) => kind.test(one));
    const path = join(folder, paths.at(-1) as string);
    const good = readFileSync(path);
    raiseVersion(path);
    const lacking = makeFolder();
    cpSync(folder, lacking, { recursive: true });
    // With the ingester's copies no query would need the store.
    for (const name of ["wal", "ingester"]) rmSync(join(lacking, name), { recursive: true });
    const ofTenant = /tenant=a\//;
    const before = contentsOf(lacking, ofTenant);
    const server = await startServer(lacking, quick);
    const runs = "loki_boltdb_shipper_compact_tables_operation_total";
    await waitFor(async () => (await readMetric(server.url, runs)) >= 3);
    for (let i = 0; i < 3; i++) {
      const query = new URLSearchParams({ query: '{app="x"}', ...range });
      const asked = `${server.url}/loki/api/v1/query_range?${query}`;
      const answer = await fetch(asked, { headers: as("a") });
      expect([answer.status, await answer.text()]).toEqual([
        503,
        expect.stringMatching(/^a newer version of Skald wrote some of the stored data/),
      ]);
    }
    // Rows that were only in the log are not there.
    const stored = wanted.slice(0, 40);
    expect(await queryLines(server.url, '{app="x"}', range, as("b"))).toEqual(stored);
    expect(contentsOf(lacking, ofTenant)).toEqual(before);
    const lines = server.log().split("\n");
    const told = lines.filter((line) => says.test(line));
    // The querier reports it once, and the compactor once.
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThanOrEqual(2);
    expect(server.log()).not.toMatch(/damaged/);
    expect(await server.kill("SIGTERM")).toBe(0);
    const verified = await runProgram(binSkald, ["verify", folder]);
    expect(verified).toMatchObject({ code: 2, stdout: expect.stringMatching(/^newer: /m) });
    rmSync(path);
    writeFileSync(path, good);
    await expectAllRows(folder);
  });
});
