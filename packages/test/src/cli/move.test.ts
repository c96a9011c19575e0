import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { pushJson, queryNumber, queryStreams } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

const lineCount = 12_000;
/** Two hours ago, and a line each 500 ms. */
const startMs = Date.now() - 7_200_000;
const from = ["--from", new Date(startMs).toISOString()];

const values = Array.from(
  { length: lineCount },
  (_, i) =>
    [
      `${BigInt(startMs + i * 500) * 1_000_000n}`,
      `line ${i}, "quoted" ${"x".repeat(50)}`,
      { app: "inner", trace: `t${i % 7}` },
    ] as const,
);

let source: TestServer;
let target: TestServer;
beforeAll(async () => {
  [source, target] = await Promise.all([startServer(makeFolder()), startServer(makeFolder())]);
  for (let at = 0; at < lineCount; at += 3000)
    expect(await pushJson(source.url, { app: `a${at % 2000}` }, values.slice(at, at + 3000))).toBe(
      204,
    );
});
afterAll(async () => {
  await Promise.all([source, target].map((one) => one.kill("SIGTERM")));
  await removeFolders();
});

const env = () => ({ SKALD_ADDR: source.url, SKALD_CONFIG: "/nonexistent" });
const skald = (argv: readonly string[]) => runProgram(binSkald, argv, { env: env() });
const query = '{app=~".+"}';

/** Starts a command and kills it as soon as its state file changed. */
async function killed(argv: readonly string[], state: string, more: Record<string, string> = {}) {
  const before = existsSync(state) ? readFileSync(state, "utf8") : "";
  const child = spawn(process.execPath, [binSkald, ...argv], {
    ...{ env: { ...process.env, ...env(), ...more }, stdio: "ignore" },
  });
  await waitFor(
    () => child.exitCode !== null || (existsSync(state) && readFileSync(state, "utf8") !== before),
  );
  if (child.exitCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

describe("export", () => {
  const unpack: Record<string, (bytes: Buffer) => Buffer> = {
    gz: gunzipSync,
    zst: zstdDecompressSync,
  };
  it.each([
    ["lines.log", /^line 0, "quoted" x+\nline 1, /],
    ["lines.log.zst", /^line 0, "quoted" x+\nline 1, /],
    [
      "lines.jsonl.gz",
      /^\{"labels":\{"app":"a0",.*"trace":"t0"\},"line":"line 0, \\"quoted\\" x+","timestamp":".*Z"\}\n/,
    ],
    ["lines.csv", /^time,labels,line\n[^,]+Z,"\{app=""a0"", .*\}","line 0, ""quoted"" x+"\n/],
  ])("writes %s", async (name, wanted) => {
    const path = join(makeFolder(), name);
    const found = await skald(["export", query, "-o", path, ...from]);
    expect(found).toMatchObject({ code: 0, stdout: "" });
    expect(found.stderr).toContain("wrote 12,000 lines");
    const bytes = readFileSync(path);
    const text = (unpack[name.split(".")[2] ?? ""]?.(bytes) ?? bytes).toString();
    expect(text).toMatch(wanted);
    expect(text.split("\n")).toHaveLength(lineCount + (name.includes("csv") ? 2 : 1));
    expect([existsSync(`${path}.state`), existsSync(`${path}.parts`)]).toEqual([false, false]);
  });

  it("writes Parquet, and goes on where runs were killed", async () => {
    const path = join(makeFolder(), "lines.parquet");
    const cut = ["--slice=5m", "--parallel=2", "--batch=500"];
    const argv = ["export", query, "-o", path, ...from, ...cut];
    for (let kills = 0; kills < 3; kills++) await killed(argv, `${path}.state`);
    expect(existsSync(path)).toBe(false);
    expect((await skald(argv.filter((one) => !from.includes(one)))).code).toBe(0);
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    expect(rows).toHaveLength(lineCount);
    expect(rows[0]).toMatchObject({
      line: expect.stringContaining("line 0,"),
      labels: { app: "a0", trace: "t0" },
    });
    expect(new Set(rows.map(({ line }) => line)).size).toBe(lineCount);
  });

  it("writes lines of several groups of streams in the order of their times", async () => {
    const path = join(makeFolder(), "lines.jsonl");
    const found = await skald(["export", query, "-o", path, ...from, "--batch=1000"]);
    expect(found).toMatchObject({ code: 0, stdout: "" });
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    const numbers = lines.map((line) => Number(/line (\d+)/.exec(line)?.[1]));
    expect(numbers).toEqual(Array.from({ length: lineCount }, (_, i) => i));
  });

  it.each([
    ["a metric query", ["sum(rate({app=~`.+`}[1m]))", "-o", "x.log"], /has no lines/],
    ["no file", [query], /name a file/],
    ["packed Parquet", [query, "-o", "x.parquet.gz"], /Parquet is packed inside/],
  ])("refuses %s: 2", async (_name, argv, wanted) => {
    const found = await runProgram(binSkald, ["export", ...argv], {
      env: env(),
      cwd: makeFolder(),
    });
    expect(found.code).toBe(2);
    expect(found.stderr).toMatch(wanted);
  });
});

describe("import", () => {
  /** One line more than the other tests count; a line that is there already is not stored twice. */
  const pushLate = () =>
    pushJson(source.url, { app: "late" }, [[`${BigInt(startMs) * 1_000_000n + 5n}`, "one"]]);

  it("copies labels and metadata through kills, each line once, and compares the counts", async () => {
    const state = join(makeFolder(), "state");
    const argv = [
      "import",
      "--from-addr",
      source.url,
      ...from,
      "--state",
      state,
      "--slice=5m",
      "--parallel=2",
      "--batch=500",
    ];
    // Lines that an agent wrote to both.
    await pushJson(target.url, { app: "a0" }, values.slice(0, 100));
    const toTarget = { SKALD_ADDR: target.url };
    for (let kills = 0; kills < 3; kills++) await killed(argv, state, toTarget);
    const rest = argv.filter((one) => !from.includes(one));
    const found = await runProgram(binSkald, rest, { env: { ...env(), ...toTarget } });
    expect(found).toMatchObject({ code: 0, stdout: "" });
    expect(found.stderr).toContain("copied 12,000 lines");
    expect(found.stderr).toContain("each stream has as many lines in each hour on both sides");
    const count = (url: string) => queryNumber(url, `sum(count_over_time(${query}[3h]))`);
    expect(await count(target.url)).toBe(lineCount);
    const first = { start: `${startMs}000000`, direction: "forward", limit: "500" };
    expect(await queryStreams(target.url, query, first)).toEqual(
      await queryStreams(source.url, query, first),
    );
    expect(existsSync(state)).toBe(false);
    // The target refuses lines an hour behind, as it does after a kill within a long slice: it has them.
    expect(await runProgram(binSkald, argv, { env: { ...env(), ...toTarget } })).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("too far behind"),
    });
  });

  it("names the streams and hours that differ: 1", async () => {
    const only = '{app="late"}';
    await pushLate();
    const state = join(makeFolder(), "state");
    const argv = ["import", "loki", only, "--from-addr", source.url, ...from, "--state", state];
    const reject = await startServer(makeFolder(), ["-validation.reject-old-samples.max-age=1h"]);
    const found = await runProgram(binSkald, argv, { env: { ...env(), SKALD_ADDR: reject.url } });
    expect(found.code).toBe(1);
    expect(found.stderr).toContain("timestamp too old");
    expect(found.stderr).toMatch(
      /app="late".*: 1 at the source, 0 at the target\n1 streams and hours differ/,
    );
    await reject.kill("SIGTERM");
  });

  it("brings history into streams that agents write to, where a tenant takes old lines", async () => {
    const now = [[`${BigInt(startMs + 7_000_000) * 1_000_000n}`, "of an agent"]] as const;
    await pushLate();
    for (const [flag, code] of [
      ["true", 1],
      ["false", 0],
    ] as const) {
      const both = await startServer(makeFolder(), [`-validation.reject-old-samples=${flag}`]);
      expect(await pushJson(both.url, { app: "late" }, [...now])).toBe(204);
      const state = join(makeFolder(), "state");
      const sides = ["--from-addr", source.url, "--addr", both.url, "--state", state];
      const found = await skald(["import", '{app="late"}', ...sides, ...from]);
      expect(found.code).toBe(code);
      const hint = /entry too far behind.*takes old lines while .* reject_old_samples: false/s;
      if (code === 1) expect(found.stderr).toMatch(hint);
      await both.kill("SIGTERM");
    }
  });

  it("needs a source: 2", async () => {
    expect(await skald(["import", query])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--from-addr"),
    });
  });
});
