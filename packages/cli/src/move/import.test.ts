import { mkdtempSync, rmSync } from "node:fs";
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
