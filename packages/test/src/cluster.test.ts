import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getJson, nowNs, pushJson } from "./testing/client.js";
import { Cluster } from "./testing/cluster.js";
import { NumberedLines, type Sight } from "./testing/numbered-lines.js";
import { waitFor } from "./testing/server.js";

interface FoundPatterns {
  readonly data: { readonly pattern: string; readonly samples: readonly [number, number][] }[];
}

/** Lines that must get through before a fault, and after it. */
const enough = 400;
let cluster: Cluster;
let lines: NumberedLines;

beforeAll(async () => {
  cluster = await Cluster.start();
  lines = new NumberedLines(cluster.gateway);
  lines.start();
}, 120_000);

afterAll(async () => {
  await lines?.stop();
  await cluster?.stop();
}, 60_000);

/** Does something under load, and looks at what queries say before, meanwhile and after. */
async function underLoad(fault: () => Promise<void>): Promise<Sight[]> {
  const sights: Sight[] = [];
  const look = async () => {
    const sight = await lines.count();
    if (sight !== undefined) sights.push(sight);
    return sight !== undefined;
  };
  /** A query may fail while a service comes back, but not for ever: the test's own limit ends it. */
  const see = async () => {
    while (!(await look()));
  };
  let isOver = false;
  await lines.more(enough);
  await see();
  const looking = (async () => {
    while (!isOver) await look();
  })();
  try {
    await fault();
    await lines.more(enough);
  } finally {
    isOver = true;
    await looking;
  }
  await see();
  return sights;
}

function expectAllRight(sights: readonly Sight[]): void {
  expect(sights.length).toBeGreaterThanOrEqual(2);
  const wrong = sights.filter(({ seen, least, most }) => seen < least || seen > most);
  expect(wrong).toEqual([]);
}

it("patterns of what comes in are found", async () => {
  const tenant = { "x-scope-orgid": "patterns" };
  const said = Array.from({ length: 40 }, (_, i) => [nowNs(), `user ${i} logged in`] as const);
  expect(await pushJson(cluster.gateway, { app: "a" }, said, tenant)).toBe(204);
  const params = { query: '{app="a"}' };
  let counts: (readonly (readonly [number, number])[])[] = [];
  await waitFor(async () => {
    const path = "/loki/api/v1/patterns";
    const { data } = await getJson<FoundPatterns>(cluster.gateway, path, params, tenant);
    counts = data.map(({ samples }) => samples);
    return data.some(({ pattern }) => pattern === "user <_> logged in");
  });
  expect(counts.flat().reduce((sum, [, count]) => sum + count, 0)).toBe(40);
}, 60_000);

describe("no acknowledged line is lost, and none counted twice, while", () => {
  it("each service is restarted in turn", async () => {
    const names = ["ingester-1", "ingester-2", "ingester-3", "distributor-1", "index-gateway"];
    const sights = await underLoad(async () => {
      for (const name of names) {
        await cluster.end(name, "SIGTERM");
        await lines.more(enough / 4);
        await cluster.start(name);
      }
    });
    expectAllRight(sights);
  }, 120_000);

  it("a distributor is killed", async () => {
    expectAllRight(await underLoad(() => cluster.end("distributor-2", "SIGKILL")));
  }, 60_000);

  it("Redis is stopped, and comes back empty", async () => {
    const sights = await underLoad(async () => {
      await cluster.end("redis", "SIGKILL");
      await lines.more(enough);
      await cluster.start("redis");
    });
    expectAllRight(sights);
  }, 60_000);

  it("an ingester is lost for good", async () => {
    expectAllRight(await underLoad(() => cluster.end("ingester-2", "SIGKILL")));
    await lines.stop();
    const numbers = await lines.numbers();
    expect(numbers).toEqual(Array.from({ length: lines.acknowledged }, (_, i) => i));
    expect(await lines.count()).toMatchObject({ seen: lines.acknowledged });
  }, 60_000);
});
