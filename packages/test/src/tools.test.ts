import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { S3Server } from "@skald/testkit";
import { nowNs, pushJson } from "./testing/client.js";
import { binSkald, runProgram } from "./testing/program.js";
import { filesBelow, makeFolder, removeFolders, startServer } from "./testing/server.js";

afterAll(removeFolders);

const flush = async (url: string) => (await fetch(`${url}/flush`, { method: "POST" })).status;

it("inspect and verify read what a process has left, and find what is damaged", async () => {
  const folder = makeFolder();
  const server = await startServer(folder);
  for (const app of ["a", "b"]) {
    expect(await pushJson(server.url, { app }, [[nowNs(), `of ${app}`]])).toBe(204);
  }
  expect(await flush(server.url)).toBe(204);
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "in the log"]])).toBe(204);
  await server.kill("SIGKILL");

  const whole = await runProgram(binSkald, ["verify", folder]);
  expect(whole).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing is damaged") });
  expect(whole.stderr).toMatch(/^100 %, (\d+) of \1 files/m);
  const segment = join(folder, filesBelow(folder, ".parquet")[0] as string);
  const log = join(folder, filesBelow(folder, ".wal").at(-1) as string);
  const inspected = await runProgram(binSkald, ["inspect", segment, log]);
  expect(inspected).toMatchObject({ code: 0, stderr: "" });
  expect(inspected.stdout).toMatch(/: segment\n {2}tenant +fake\n/);
  expect(inspected.stdout).toMatch(/: write-ahead log\n/);

  const bytes = readFileSync(segment);
  bytes[10]! ^= 1;
  writeFileSync(segment, bytes);
  const { code, stdout } = await runProgram(binSkald, ["verify", folder]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^damaged: .*\.parquet: column timestamp, page of block 0 at byte/);
});

it("verify reads a bucket by the flags of the server", async () => {
  const bucket = new S3Server();
  const endpoint = await bucket.open();
  const flags = [
    `-s3.endpoint=${endpoint}`,
    "-s3.force-path-style",
    `-s3.access-key-id=${bucket.accessKeyId}`,
    "-s3.secret-access-key=secret",
    "-s3.max-retries=1",
  ];
  const server = await startServer(makeFolder(), [...flags, `-s3.buckets=${bucket.bucket}`]);
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "line"]])).toBe(204);
  expect(await flush(server.url)).toBe(204);
  expect(await server.kill("SIGTERM")).toBe(0);
  const url = `s3://${bucket.bucket}`;
  const { code, stdout } = await runProgram(binSkald, ["verify", url, "-json", ...flags]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ damage: [], checked: { segment: 1 } });
  await bucket.close();
  const away = await runProgram(binSkald, ["verify", url, ...flags]);
  expect(away).toMatchObject({ code: 2, stdout: "" });
});
