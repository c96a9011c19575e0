import { mkdirSync, rmSync } from "node:fs";
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
  // Reading it fails like reading from a broken disk: the file system says so, not the bytes.
  rmSync(path);
  mkdirSync(path);
  for (let i = 0; i < 2; i++) expect(await queryLines(server.url, '{app="a"}')).toEqual(["line"]);
  expect(await readMetric(server.url, "loki_querier_corrupt_segments_total")).toBe(1);
  expect(server.log()).toMatch(
    new RegExp(`"level":"error"[^\\n]*"segment":"${path}"[^\\n]*"msg":"a segment is damaged`),
  );
  await server.kill("SIGTERM");
});
