import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ComposeCluster } from "./testing/compose.js";
import { NumberedLines, type Sight } from "./testing/numbered-lines.js";

/** Lines that must get through before a disturbance, during it where pushes can go on, and after it. */
const enough = 400;
/** Between two queries while the cluster is disturbed, ms. */
const lookPauseMs = 250;
let cluster: ComposeCluster;
let lines: NumberedLines;

beforeAll(async () => {
  cluster = await ComposeCluster.start();
  lines = new NumberedLines(cluster.url, { pauseMs: 40 });
  lines.start();
}, 600_000);

afterAll(async () => {
  await lines?.stop();
  await cluster?.remove();
}, 120_000);

/** Counts the lines; undefined where the query gave no answer, as while the gateway or all frontends are down. */
async function look(): Promise<Sight | undefined> {
  try {
    return await lines.count();
  } catch (error) {
    // What fetch throws when a connection is refused, ends early or takes too long.
    if (error instanceof TypeError || (error as Error).name === "TimeoutError") return undefined;
    throw error;
  }
}

/** Counts again and again until there is an answer; the limit of the test ends it. */
async function see(): Promise<Sight> {
  for (;;) {
    const sight = await look();
    if (sight !== undefined) return sight;
    await pause(lookPauseMs);
  }
}

/** Disturbs the cluster under load, and expects every answer before, during and after it to be right. */
async function underLoad(disturb: () => Promise<void>): Promise<void> {
  const sights: Sight[] = [];
  let isOver = false;
  await lines.more(enough);
  sights.push(await see());
  const looking = (async () => {
    while (!isOver) {
      const sight = await look();
      if (sight !== undefined) sights.push(sight);
      await pause(lookPauseMs);
    }
  })();
  try {
    await disturb();
    await lines.more(enough);
  } finally {
    isOver = true;
    await looking;
  }
  sights.push(await see());
  expect(sights.filter(({ seen, least, most }) => seen < least || seen > most)).toEqual([]);
}

it("ingesters and queriers are added", async () => {
  await underLoad(() => cluster.scale({ ingester: 4, querier: 3 }));
});

it("ingesters and queriers are taken away", async () => {
  await underLoad(() => cluster.scale({ ingester: 3, querier: 2 }));
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
  "redis-1",
  "s3-1",
  "gateway-1",
])("%s is killed and comes back", async (name) => {
  await underLoad(async () => {
    await cluster.kill(name);
    // Nothing gets through without the gateway.
    if (name !== "gateway-1") await lines.more(enough);
    await cluster.revive(name);
  });
});

it("every acknowledged line is there once", async () => {
  await lines.stop();
  const all = Array.from({ length: lines.acknowledged }, (_, line) => line);
  expect(await see()).toMatchObject({ seen: all.length });
  expect(await lines.numbers()).toEqual(all);
});
