import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { runForTest } from "../testing/run-command.js";
import { StubServer } from "../testing/stub.js";

const dayNs = 86_400_000_000_000n;
const startNs = BigInt(Date.parse("2026-11-20T10:00:00Z")) * 1_000_000n;
const none = { streams: [], vector: [] };

it("asks for labels day by day, because servers limit how long a query may be", async () => {
  const server = new StubServer();
  await server.open();
  const folder = mkdtempSync(join(tmpdir(), "skald-import-"));
  // Each day has a label of its own.
  server.answer = ({ path, params }) => {
    const day = (BigInt(params.start ?? 0) - startNs) / dayNs;
    if (path.endsWith("/labels")) return JSON.stringify({ data: ["job", `day_${day}`] });
    const resultType = path.endsWith("/query_range") ? "streams" : "vector";
    return JSON.stringify({ data: { resultType, result: none[resultType] } });
  };
  const range = ["--from=2026-11-20T10:00:00Z", "--to=2026-11-22T22:00:00Z", "--slice=60h"];
  const argv = ["import", "--from-addr", server.url, ...range, "--state", join(folder, "state")];
  const found = await runForTest(argv, { env: { SKALD_ADDR: server.url } });
  server.close();
  rmSync(folder, { recursive: true });
  expect(found).toMatchObject({ code: 0 });
  const asked = (end: string) => server.asked.filter(({ path }) => path.endsWith(end));
  for (const { params } of asked("/labels"))
    expect(BigInt(params.end!) - BigInt(params.start!)).toBeLessThanOrEqual(dayNs);
  expect(asked("/query_range")[0]?.params.query).toBe('{job=~".+"}');
  for (const { params } of asked("/query"))
    expect(params.query).toContain("sum by (job, day_0, day_1, day_2)");
});

it("copies slices one after the other, each by groups of streams, so that no line is far behind its stream", async () => {
  const server = new StubServer();
  await server.open();
  const folder = mkdtempSync(join(tmpdir(), "skald-import-"));
  const counted = ["a", "b"].map((pod) => ({ metric: { pod }, value: [0, "6000"] }));
  server.answer = ({ path, params }) => {
    if (path.endsWith("/series")) return '{"data":[{"job":"j","pod":"a"},{"job":"j","pod":"b"}]}';
    if (path.endsWith("/labels")) return '{"data":["job","pod"]}';
    const isGrouped = params.query?.startsWith("sum by (pod)");
    const result = path.endsWith("/query_range") || !isGrouped ? [] : counted;
    const resultType = path.endsWith("/query_range") ? "streams" : "vector";
    return JSON.stringify({ data: { resultType, result } });
  };
  const range = ["--from=2026-11-20T10:00:00Z", "--to=2026-11-20T13:00:00Z", "--slice=1h"];
  const argv = ["import", '{job="j"}', "--from-addr", server.url, "--no-verify", ...range];
  const state = ["--state", join(folder, "state")];
  const found = await runForTest([...argv, ...state], { env: { SKALD_ADDR: server.url } });
  server.close();
  rmSync(folder, { recursive: true });
  expect(found).toMatchObject({ code: 0 });
  const asked = server.asked.map(({ params }) => params.query ?? "");
  const slice = ['sum by (pod) (count_over_time({job="j"} [3600000ms]))'];
  for (const pod of ["a", "b"]) slice.push(`{job="j", pod="${pod}"}`);
  expect(asked.slice(-9)).toEqual([...slice, ...slice, ...slice]);
});

it.each([
  ["import", ["import", '{job="j"}', "--no-verify", "--state"], ""],
  ["export", ["export", '{job="j"}', "-o"], ".state"],
])("goes on with the range of its state file, whatever the time is: %s", async (_, argv, end) => {
  const server = new StubServer();
  await server.open();
  const folder = mkdtempSync(join(tmpdir(), "skald-import-"));
  const [path, toNs] = [join(folder, "lines.log"), startNs + dayNs];
  const isImport = argv[0] === "import";
  const work = isImport ? `import ${server.url} ${server.url}` : `export text ${server.url}`;
  const state = { fromNs: `${startNs}`, toNs: `${toNs}`, sliceNs: `${dayNs}`, done: {} };
  writeFileSync(path + end, JSON.stringify({ work: `${work} {job="j"}`, ...state }));
  server.answer = ({ path: asked }) => {
    if (asked.endsWith("/series")) return undefined;
    const resultType = asked.endsWith("/query_range") ? "streams" : "vector";
    return JSON.stringify({ data: { resultType, result: [] } });
  };
  const source = isImport ? ["--from-addr", server.url] : [];
  const found = await runForTest([...argv, path, ...source], { env: { SKALD_ADDR: server.url } });
  server.close();
  rmSync(folder, { recursive: true });
  expect(found).toMatchObject({ code: 0 });
  const asked = server.asked.filter(({ path: one }) => /series|query_range/.test(one));
  const ranges = asked.map(({ params }) => [params.start, params.end]);
  expect(ranges).toEqual([
    [`${startNs}`, `${toNs}`],
    [`${startNs}`, `${toNs}`],
  ]);
});
