import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { queryLines, queryNumber, queryStreams } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer(makeFolder());
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const env = () => ({ SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent" });
const push = (argv: readonly string[], input?: string) =>
  runProgram(binSkald, ["push", ...argv], {
    env: env(),
    ...(input === undefined ? {} : { input }),
  });

describe("skald push", () => {
  it("stores lines of stdin with their times, labels and metadata", async () => {
    const time = new Date(Date.now() - 60_000).toISOString();
    const line = JSON.stringify({ ts: time, msg: "hi", trace: "t1", k8s: { pod: "p" } });
    const argv = [
      "--label",
      "app=stdin",
      "--label-from",
      "pod=k8s.pod",
      "--metadata-from",
      "trace",
    ];
    const { code, stdout, stderr } = await push(argv, `${line}\n\nplain`);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("pushed 2 lines"),
    });
    const streams = await queryStreams(server.url, '{app="stdin"}');
    const found = streams.map(({ stream, values }) => ({
      pod: stream.pod,
      trace: stream.trace,
      values,
    }));
    const ns = `${BigInt(Date.parse(time)) * 1_000_000n}`;
    expect(found).toContainEqual({ pod: "p", trace: "t1", values: [[ns, line]] });
    expect(found).toContainEqual({
      pod: undefined,
      trace: undefined,
      values: [[`${BigInt(ns) + 1n}`, "plain"]],
    });
  });

  it("stores files, also packed ones, and equal lines of one time each", async () => {
    const folder = makeFolder();
    const time = new Date(Date.now() - 60_000).toISOString();
    const text = `time=${time} same\n`.repeat(5);
    writeFileSync(join(folder, "a.log"), text);
    writeFileSync(join(folder, "b.log.gz"), gzipSync(text));
    // Two frames, as a file has that was appended to.
    const frames = [text, text].map((one) => zstdCompressSync(one));
    writeFileSync(join(folder, "c.zst"), Buffer.concat(frames));
    const names = ["a.log", "b.log.gz", "c.zst"].map((name) => join(folder, name));
    const argv = [...names, "--label=app=files"];
    expect(await push(argv)).toMatchObject({ code: 0 });
    expect(await queryLines(server.url, '{app="files", filename=~".*a.log"}')).toHaveLength(5);
    expect(await queryLines(server.url, '{app="files", filename=~".*gz"}')).toHaveLength(5);
    expect(await queryLines(server.url, '{app="files", filename=~".*zst"}')).toHaveLength(10);
  });

  it("goes on where an earlier run was killed, and stores each line once", async () => {
    const folder = makeFolder();
    const path = join(folder, "big.log");
    const state = join(folder, "state");
    const lines = 20_000;
    const start = Date.now() - 600_000;
    writeFileSync(
      path,
      Array.from(
        { length: lines },
        (_, i) => `ts=${start + (i >> 4)} n=${i} ${"x".repeat(100)}\n`,
      ).join(""),
    );
    const argv = ["push", path, "--label=app=killed", "--state", state, "--batch-size=20000"];
    for (let kills = 0; kills < 3; kills++) {
      const child = spawn(process.execPath, [binSkald, ...argv], {
        env: { ...process.env, ...env() },
        stdio: "ignore",
      });
      const before = existsSync(state) ? readFileSync(state, "utf8") : "";
      await waitFor(() => existsSync(state) && readFileSync(state, "utf8") !== before);
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    const offset = JSON.parse(readFileSync(state, "utf8"))[path].offset;
    expect(offset).toBeGreaterThan(0);
    expect(await push(argv.slice(1))).toMatchObject({ code: 0 });
    const count = () => queryNumber(server.url, 'sum(count_over_time({app="killed"}[1h]))');
    expect(await count()).toBe(lines);
    expect((await push(argv.slice(1))).stderr).toContain("pushed 0 lines");
    expect(await count()).toBe(lines);
  });

  it("-F goes on with lines as they are written, through a rotation", async () => {
    const folder = makeFolder();
    const path = join(folder, "app.log");
    writeFileSync(path, "one\ntw");
    const argv = ["push", "-F", path, "--label=app=follow", "--batch-wait=50ms", "-q"];
    const child = spawn(process.execPath, [binSkald, ...argv], {
      env: { ...process.env, ...env() },
      stdio: "ignore",
    });
    const lines = () => queryLines(server.url, '{app="follow"}');
    await waitFor(async () => (await lines()).length === 1);
    appendFileSync(path, "o\n");
    await waitFor(async () => (await lines()).length === 2);
    renameSync(path, `${path}.1`);
    writeFileSync(path, "three\n");
    await waitFor(async () => (await lines()).length === 3);
    expect(await lines()).toEqual(["one", "two", "three"]);
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
  });

  it("tells what the server refuses, and stores the rest: 5", async () => {
    const old = `ts=2001-01-01T00:00:00Z msg=old\nts=${new Date().toISOString()} msg=new\n`;
    const found = await push(["--label=app=refused"], old);
    expect(found).toMatchObject({ code: 5 });
    expect(found.stderr).toContain("timestamp too old");
    expect(await queryLines(server.url, '{app="refused"}')).toHaveLength(1);
  });

  it.each([
    ["a label that is none", ["--label=app"], 2, /is not NAME=VALUE/],
    ["a file that is not there", ["/nonexistent"], 2, /ENOENT/],
    ["a format that is none", ["--format=xml"], 2, /Allowed choices are auto/],
    ["a server that is not there", ["--addr=127.0.0.1:9", "--retries=0"], 4, /was not reached/],
  ])("%s ends with its code", async (_name, argv, code, wanted) => {
    const found = await push(argv, "x\n");
    expect(found.code).toBe(code);
    expect(found.stderr).toMatch(wanted);
  });
});
