import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { getJson, nowNs, pushJson, queryLines } from "./testing/client.js";
import { Cluster } from "./testing/cluster.js";
import { waitFor } from "./testing/server.js";

const tenant = { "x-scope-orgid": "shop" };
const deletePath = "/loki/api/v1/delete";
const away = "ingester-3";
/** A request waits 90 s for what other processes keep; the rest is for a busy machine. */
const deletedWithinMs = 240_000;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start({
    counts: { distributor: 1, querier: 1, ruler: 0, "pattern-ingester": 0 },
    flags: [
      "-compactor.delete-request-cancel-period=0s",
      "-compactor.compaction-interval=1s",
      "-compactor.retention-delete-delay=100ms",
      "-ingester.chunks-retain-period=0s",
      "-ingester.flush-check-period=1s",
    ],
  });
}, 240_000);

afterAll(async () => {
  await cluster?.stop();
}, 60_000);

async function push(app: string, line: string): Promise<void> {
  expect(await pushJson(cluster.gateway, { app }, [[nowNs(), line]], tenant)).toBe(204);
}

const lines = () => queryLines(cluster.gateway, '{app=~".+"}', {}, tenant);

/** The number of streams that ingesters have in memory; each has one copy of each stream. */
async function copies(): Promise<number> {
  const texts = await Promise.all(
    cluster.services.map((url) => fetch(`${url}/metrics`).then((answer) => answer.text())),
  );
  const found = texts.flatMap((text) => [
    ...text.matchAll(/^loki_ingester_memory_streams\{tenant="shop"\} (\d+)$/gm),
  ]);
  return found.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function status(): Promise<string | undefined> {
  const listed = await getJson<{ status: string }[]>(cluster.gateway, deletePath, {}, tenant);
  return listed[0]?.status;
}

it("an ingester that was away while its rows were deleted does not bring them back", async () => {
  await push("gone", "secret");
  await push("kept", "public");
  await waitFor(async () => (await copies()) === 6);
  await cluster.end(away, "SIGKILL");
  await fetch(`${cluster.gateway}/ring?forget=${away}`, { method: "POST", redirect: "manual" });

  const start = new Date(Date.now() - 3_600_000).toISOString();
  const query = new URLSearchParams({ query: '{app="gone"}', start });
  const asked = await fetch(`${cluster.gateway}${deletePath}?${query}`, {
    ...{ method: "POST", headers: tenant },
  });
  expect(asked.status).toBe(204);
  await fetch(`${cluster.gateway}/flush`, { method: "POST" });
  await waitFor(async () => (await status()) === "processed", deletedWithinMs);
  expect(await lines()).toEqual(["public"]);

  let isBack = false;
  const told = new Set<string>();
  const asking = (async () => {
    while (!isBack) {
      // While the ring takes the ingester in, a query may fail; it must not tell of the line.
      for (const line of await lines().catch(() => [])) told.add(line);
    }
  })();
  await cluster.start(away);
  await waitFor(async () => (await status()) !== "processed");
  isBack = true;
  await asking;
  expect([...told]).toEqual(["public"]);
  expect(await lines()).toEqual(["public"]);
}, 600_000);
