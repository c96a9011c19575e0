import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ComposeCluster } from "./testing/compose.js";
import { enough, NumberedLines } from "./testing/numbered-lines.js";

let cluster: ComposeCluster;
let lines: NumberedLines;
/** Queries that failed, since a test emptied it. */
const failed: string[] = [];
/** Without them there is no address, or no store of all rows. */
const single = ["gateway-1", "s3-1"];

beforeAll(async () => {
  cluster = await ComposeCluster.start();
  lines = new NumberedLines(cluster.url, {
    pauseMs: 40,
    gatewayMayEnd: true,
    onFailedQuery: (failure) => failed.push(failure),
  });
  lines.start();
}, 600_000);

afterAll(async () => {
  await lines?.stop();
  await cluster?.remove();
}, 120_000);

it("ingesters and queriers are added", async () => {
  const wrong = await lines.wrongCounts(() => cluster.scale({ ingester: 4, querier: 3 }));
  expect(wrong).toEqual([]);
});

it("ingesters and queriers are taken away", async () => {
  const wrong = await lines.wrongCounts(() => cluster.scale({ ingester: 3, querier: 2 }));
  expect(wrong).toEqual([]);
});

it.each([
  "distributor-1",
  "ingester-1",
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
