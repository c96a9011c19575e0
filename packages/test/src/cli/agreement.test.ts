import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { pushJson } from "../testing/client.js";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

const startMs = Date.UTC(2026, 10, 20, 10);
const lineCount = 400;
/** Queries in the forms of the benchmark kit's: filters, parsers, counts, groups, quantiles. */
const queries = [
  '{app="checkout"} |= "request 77 "',
  '{app="checkout"} |= "no such text"',
  '{app="checkout"} |= "error" |= "upstream" != "retry"',
  '{app="checkout"} |~ `/api/v[12]/orders/[0-9]+7"`',
  '{app="checkout"} |~ `(?i)Connection RESET`',
  '{app="checkout"} | json | status >= 500 | duration_ms > 50',
  '{app="checkout"} | json status="status" | status >= 500',
  '{app="checkout"} | json | line_format `{{.status}} {{.path}}`',
  '{app="checkout"} | pattern `<_>"path":"<path>"<_>` | path =~ ".*9"',
  'sum(count_over_time({app="checkout"} |= "error" [1h]))',
  'sum by (status) (count_over_time({app="checkout"} | json [1h]))',
  'topk(2, sum by (path) (count_over_time({app="checkout"} | json [1h])))',
  'quantile_over_time(0.9, {app="checkout"} | json | unwrap duration_ms [1h]) by (app)',
  'sum by (detected_level) (bytes_over_time({app="checkout"} [1h]))',
  'max by (app) (max_over_time({app="checkout"} | json | unwrap duration_ms [1h]))',
];
const isMetric = (query: string) => /^[a-z_]+[ (]/.test(query);

let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = makeFolder();
  const lines = Array.from({ length: lineCount }, (_, i) => {
    const at = new Date(startMs + i * 1000).toISOString();
    const isBad = i % 9 === 0;
    return JSON.stringify({
      ts: at,
      level: isBad ? "error" : "info",
      msg: isBad ? `upstream ${i % 2 ? "retry" : "connection reset"}` : `request ${i} done`,
      path: `/api/v${1 + (i % 2)}/orders/${i}`,
      status: isBad ? 503 : 200,
      duration_ms: (i * 37) % 113,
    });
  });
  writeFileSync(join(folder, "checkout.log"), `${lines.join("\n")}\n`);
  server = await startServer(folder, [
    "-validation.reject-old-samples=false",
    "-validation.discover-service-name=",
  ]);
  const values = lines.map((line, i): [string, string] => [
    `${BigInt(startMs + i * 1000) * 1_000_000n}`,
    line,
  ]);
  expect(await pushJson(server.url, { app: "checkout" }, values)).toBe(204);
  await fetch(`${server.url}/flush`, { method: "POST" });
  await waitFor(() => filesBelow(join(folder, "chunks"), ".parquet").length > 0);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

/** What a source answers, without labels that only it has. */
async function answer(query: string, source: readonly string[]): Promise<string> {
  const from = new Date(startMs).toISOString();
  const to = new Date(startMs + lineCount * 1000).toISOString();
  const how = isMetric(query)
    ? ["--at", to, "-o", "csv"]
    : ["--from", from, "--to", to, "--forward", "--limit", "0", "-o", "raw"];
  const argv = ["query", query, "-q", "-z", "UTC", ...how, ...source];
  const env = { SKALD_CONFIG: "/nonexistent" };
  const { code, stdout, stderr } = await runProgram(binSkald, argv, { env, cwd: folder });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

it.each(queries)("a server, its folder and a plain file agree on %s", async (query) => {
  const ofServer = await answer(query, ["--addr", server.url]);
  expect(await answer(query, ["--dir", "chunks"])).toBe(ofServer);
  expect(await answer(query, ["--files", "checkout.log"])).toBe(ofServer);
  expect(ofServer !== "").toBe(!query.includes("no such text"));
});
