import { mkdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { nowNs, pushJson, queryLines, readMetric } from "./testing/client.js";
import { filesBelow, makeFolder, removeFolders, startServer } from "./testing/server.js";

afterAll(removeFolders);

it("a local segment that the disk does not give is read from the store, and named in the log", async () => {
  const server = await startServer(makeFolder());
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "line"]])).toBe(204);
  expect((await fetch(`${server.url}/flush`, { method: "POST" })).status).toBe(204);
  const segments = join(server.folder, "ingester", "segments");
  const [name] = filesBelow(segments, ".parquet");
  const path = join(segments, name as string);
  // A folder in the place of the file makes reads fail in the file system, as a broken disk does.
  rmSync(path);
  mkdirSync(path);
  for (let i = 0; i < 2; i++) expect(await queryLines(server.url, '{app="a"}')).toEqual(["line"]);
  expect(await readMetric(server.url, "loki_querier_corrupt_segments_total")).toBe(1);
  expect(server.log()).toMatch(
    new RegExp(`"level":"error"[^\\n]*"segment":"${path}"[^\\n]*"msg":"a segment is damaged`),
  );
  await server.kill("SIGTERM");
});

it("a store whose directory is gone answers 503, takes nothing, and is itself again when it is back", async () => {
  const folder = makeFolder();
  const chunks = join(folder, "chunks");
  const aside = join(folder, "aside");
  const first = await startServer(folder);
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(), "stored"]])).toBe(204);
  expect(await first.kill("SIGTERM")).toBe(0);
  // Now only the store has the row.
  for (const name of ["ingester", "wal"])
    renameSync(join(folder, name), join(folder, `${name}.old`));

  const server = await startServer(folder);
  const flush = async () => (await fetch(`${server.url}/flush`, { method: "POST" })).status;
  const ask = () => fetch(`${server.url}/loki/api/v1/query_range?query={app="a"}`);
  renameSync(chunks, aside);
  for (const round of [0, 1]) {
    const answer = await ask();
    expect(answer.status).toBe(503);
    expect(await answer.text()).toMatch(/the object store in .*chunks is not there; mount it/);
    expect(await pushJson(server.url, { app: "a" }, [[nowNs(), `new ${round}`]])).toBe(204);
    expect(await flush()).toBe(503);
    // The second round has an empty directory in its place.
    if (round === 0) mkdirSync(chunks);
  }
  expect(filesBelow(chunks, "")).toEqual([]);
  rmdirSync(chunks);
  renameSync(aside, chunks);
  expect(await queryLines(server.url, '{app="a"}')).toEqual(["stored", "new 0", "new 1"]);
  expect(await flush()).toBe(204);
  expect(await server.kill("SIGTERM")).toBe(0);
  expect(filesBelow(chunks, ".parquet")).toHaveLength(3);
});
