import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { getJson, pushJson } from "./testing/client.js";
import { CountedServer } from "./testing/entries.js";
import { makeFolder, removeFolders } from "./testing/server.js";
import { TailClient } from "./testing/tail-client.js";

// Each bound is the number of files that the walk enters today. Lower a bound when a change makes the walk shorter.

const evaluationMs = 1000;
let counted: CountedServer;
let url: string;

beforeAll(async () => {
  const config = join(makeFolder(), "config.json");
  const settings = {
    auth_enabled: false,
    // The ingester looks for heads to seal often, so that this work always counts as idle.
    ingester: { flush_check_period: "1s" },
    // The ruler looks for new rules rarely, so that this work falls into few walks.
    ruler: { poll_interval: "4s" },
  };
  writeFileSync(config, JSON.stringify({ ...settings, server: { log_format: "json" } }));
  counted = await CountedServer.start([`-config.file=${config}`]);
  ({ url } = counted.server);
  await push(
    Array.from(
      { length: 500 },
      (_, i) => `level=${i % 7 === 0 ? "error" : "info"} dur=${i}ms n=${i}`,
    ),
  );
  await counted.noteIdle();
});
afterAll(removeFolders);

it.each([
  { name: "a push", most: 60, walk: () => push(["one line level=info"]) },
  {
    name: "a log query",
    most: 116,
    walk: () => ask("query_range", { query: '{app="walk"} |= "error"', limit: "10" }),
  },
  {
    name: "a log query with logfmt",
    most: 118,
    walk: () => ask("query_range", { query: '{app="walk"} | logfmt | dur > 20ms', limit: "10" }),
  },
  {
    name: "a metric query from headers",
    most: 116,
    walk: () =>
      ask("query_range", { query: 'sum by (app) (count_over_time({app="walk"}[1m]))', step: "60" }),
  },
  {
    name: "a metric query with logfmt",
    most: 127,
    walk: () => ask("query", { query: 'sum by (level) (rate({app="walk"} | logfmt [5m]))' }),
  },
  { name: "a tail of ten old lines and a new one", most: 159, walk: tail },
])("$name enters at most $most files", async ({ walk, most }) => {
  expectAtMost(most, await counted.filesOf(walk));
});

it("a rule evaluation enters at most 150 files", async () => {
  const rule = { record: "lines", expr: 'sum(count_over_time({app="walk"}[1m]))' };
  const group = { name: "walk", interval: `${evaluationMs}ms`, rules: [rule] };
  const body = JSON.stringify(group);
  const answer = await fetch(`${url}/loki/api/v1/rules/walk`, { method: "POST", body });
  expect(answer.status).toBe(202);
  expectAtMost(150, await counted.filesOf(() => pause(1.5 * evaluationMs)));
});

async function push(lines: readonly string[]): Promise<void> {
  const firstMs = Date.now() - lines.length;
  const values = lines.map((line, i) => [`${firstMs + i}000000`, line] as const);
  expect(await pushJson(url, { app: "walk" }, values)).toBe(204);
}

async function ask(path: string, params: Readonly<Record<string, string>>): Promise<void> {
  const { data } = await getJson<{ data: { result: unknown[] } }>(
    url,
    `/loki/api/v1/${path}`,
    params,
  );
  expect(data.result.length).toBeGreaterThan(0);
}

async function tail(): Promise<void> {
  const client = new TailClient(url, { query: '{app="walk"}', limit: "10" });
  await client.linesOf(10);
  await push(["a new line level=info"]);
  await client.linesOf(11);
  await client.close();
}

/** Fails with the list of files, which shows the new one. */
function expectAtMost(most: number, files: readonly string[]): void {
  expect(files.length).toBeGreaterThan(10);
  if (files.length > most)
    throw new Error(`${files.length} files, at most ${most} expected:\n${files.join("\n")}`);
}
