import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ComposeCluster } from "./testing/compose.js";
import { enough, NumberedLines } from "./testing/numbered-lines.js";
import { binSkald, type ProgramResult, runProgram } from "./testing/server.js";

let cluster: ComposeCluster;
let lines: NumberedLines;
/** Queries that failed, since a test emptied it. */
const failed: string[] = [];
/** Without them there is no address, or no store of all rows. */
const single = ["gateway-1", "s3-1"];
const canaryEnd = new AbortController();
let canary: Promise<ProgramResult> | undefined;

beforeAll(async () => {
  cluster = await ComposeCluster.start();
  lines = new NumberedLines(cluster.url, {
    pauseMs: 40,
    gatewayMayEnd: true,
    onFailedQuery: (failure) => failed.push(failure),
  });
  lines.start();
  const settings = ["-tenant-id=canary", "-interval=200ms", "-port=0", "-json"];
  canary = runProgram(binSkald, ["canary", cluster.url, ...settings], { end: canaryEnd.signal });
}, 600_000);

afterAll(async () => {
  await lines?.stop();
  canaryEnd.abort();
  await canary;
  await cluster?.remove();
}, 120_000);

it("ingesters and queriers are added", async () => {
  const wrong = await lines.wrongCounts(() => cluster.scale({ "ingester-4": 1, querier: 3 }));
  expect(wrong).toEqual([]);
});

it("ingesters and queriers are taken away", async () => {
  const wrong = await lines.wrongCounts(() => cluster.scale({ "ingester-4": 0, querier: 2 }));
  expect(wrong).toEqual([]);
});

it("an ingester whose container is created again keeps its name in the ring", async () => {
  const wrong = await lines.wrongCounts(() => cluster.recreate("ingester-2"));
  expect(wrong).toEqual([]);
  const page = await fetch(`${cluster.url}/ring`, { headers: { accept: "application/json" } });
  const { shards } = (await page.json()) as { shards: readonly { id: string; state: string }[] };
  const names = ["ingester-1", "ingester-2", "ingester-3"];
  expect(shards.map(({ id, state }) => `${id} ${state}`).sort()).toEqual(
    names.map((name) => `${name} ACTIVE`),
  );
});

it.each([
  "distributor-1",
  "ingester-1-1",
  "query-scheduler-1",
  "query-frontend-1",
  "querier-1",
  "index-gateway-1",
  "compactor-1",
  "ruler-1",
  "pattern-ingester-1",
  "redis-1",
  "s3-1",
  "gateway-1",
])("%s is killed and comes back", async (name) => {
  failed.length = 0;
  const wrong = await lines.wrongCounts(async () => {
    await cluster.kill(name);
    // Nothing gets through without the gateway.
    if (name !== "gateway-1") await lines.more(enough);
    await cluster.revive(name);
  });
  expect(wrong).toEqual([]);
  // The others are two or more, and take the queries of the one that is gone.
  if (!single.includes(name)) expect(failed).toEqual([]);
});

it("every acknowledged line is there once", async () => {
  await lines.stop();
  const all = Array.from({ length: lines.acknowledged }, (_, line) => line);
  expect(await lines.surelyCount()).toMatchObject({ seen: all.length });
  expect(await lines.numbers()).toEqual(all);
});

it("the canary found each of its lines, once, by every way", async () => {
  canaryEnd.abort();
  const { code, stdout, stderr } = (await canary)!;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ missing: 0, duplicates: 0, unexpected: 0 });
});
