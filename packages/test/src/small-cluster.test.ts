import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Cluster } from "./testing/cluster.js";
import { waitFor } from "./testing/server.js";
import {
  type CollectedSpan,
  Collector,
  callerId,
  orphansOf,
  pushRoute,
  pushTraced,
  queryRoute,
  queryTraced,
  sendingTo,
  traced,
  tracedTenant,
} from "./testing/traces.js";

const headers = { "x-scope-orgid": "shop" };
const groups = Array.from({ length: 8 }, (_, i) => `group-${i}`);
const counts = {
  ...{ ingester: 2, distributor: 1, querier: 1, "query-frontend": 2 },
  ...{ "query-scheduler": 2, "index-gateway": 2, compactor: 2, ruler: 2 },
};
let cluster: Cluster;
let collector: Collector;

beforeAll(async () => {
  collector = await Collector.start();
  cluster = await Cluster.start({ counts }, { TRACING: "true", ...sendingTo(collector.url) });
}, 240_000);

afterAll(async () => {
  await cluster?.stop();
  await collector.stop();
}, 60_000);

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly tokens: readonly number[];
}

/** Resolves with the members of a ring, from its page. */
async function ringOf(service: string): Promise<readonly Shown[]> {
  const accept = { accept: "application/json" };
  const response = await fetch(`${cluster.gateway}/${service}/ring`, { headers: accept });
  const { shards } = (await response.json()) as { shards: readonly Shown[] };
  return shards;
}

/** Kills a service and forgets it in the ring, which saves the wait for missing heartbeats. */
async function lose(name: string, service: string): Promise<void> {
  await cluster.end(name, "SIGKILL");
  const url = `${cluster.gateway}/${service}/ring?forget=${name}`;
  await fetch(url, { method: "POST", redirect: "manual" });
}

/** Resolves with the rules evaluated since a time (ms since the epoch), or undefined while a ruler does not answer. */
async function evaluatedSince(ms: number): Promise<readonly string[] | undefined> {
  const response = await fetch(`${cluster.gateway}/prometheus/api/v1/rules`, { headers });
  const { data, warnings } = (await response.json()) as {
    data: { groups: readonly { name: string; lastEvaluation: string }[] } | null;
    warnings?: readonly string[];
  };
  if (data === null || warnings !== undefined) return undefined;
  return data.groups
    .filter(({ lastEvaluation }) => Date.parse(lastEvaluation) > ms)
    .map(({ name }) => name);
}

async function allEvaluatedSince(ms: number): Promise<boolean> {
  return (await evaluatedSince(ms))?.length === groups.length;
}

/** Resolves with the spans of a trace as soon as all of these names are among them. */
async function spansWith(traceId: string, names: readonly string[]): Promise<CollectedSpan[]> {
  const found = () => [...new Set(collector.of(traceId).map(({ name }) => name))];
  await waitFor(() => names.every((name) => found().includes(name)), 30_000).catch(() => undefined);
  expect(found()).toEqual(expect.arrayContaining([...names]));
  return collector.of(traceId);
}

describe("spans of all that take part", () => {
  it("a push is one trace through all that take part in it", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4701";
    const answer = await pushTraced(cluster.gateway, traced(id));
    expect(answer.status).toBe(204);
    const call = "skald.v1.Ingester/Push";
    const spans = await spansWith(id, [pushRoute, call]);
    const services = new Set(spans.map(({ service }) => service));
    expect([...services].sort()).toEqual(["skald-distributor", "skald-ingester"]);
    expect(spans.find(({ name }) => name === pushRoute)?.parentId).toBe(callerId);
    await waitFor(() => orphansOf(collector.of(id)).length === 0, 30_000);
  }, 60_000);

  it("a query is one trace through all that take part in it", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4702";
    const answer = await queryTraced(cluster.gateway, traced(id));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("traceresponse")).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-01$`));
    const names = [
      queryRoute,
      "query",
      "skald.v1.Scheduler/Run",
      "scheduled query",
      "skald.v1.Ingester/Scan",
      "job scan",
    ];
    await spansWith(id, names);
    await waitFor(() => orphansOf(collector.of(id)).length === 0, 30_000);
    // Each process sends its spans at its own times.
    const services = ["query-frontend", "query-scheduler", "querier", "ingester"];
    await waitFor(() => {
      const heard = new Set(collector.of(id).map(({ service }) => service));
      return services.every((one) => heard.has(`skald-${one}`));
    }, 30_000);
    const spans = collector.of(id);
    expect(new Set(spans.map(({ state }) => state))).toEqual(new Set(["vendor=1"]));
    const route = spans.find(({ name }) => name === queryRoute);
    expect([route?.parentId, route?.attributes.tenant]).toEqual([callerId, tracedTenant]);
    const { attributes } = spans.find(({ name }) => name === "query") as CollectedSpan;
    expect(attributes["skald.bytes_scanned"]).toBeGreaterThan(0);
    expect(attributes["skald.splits"]).toBeGreaterThan(0);
    expect(attributes["skald.queue_seconds"]).toBeGreaterThanOrEqual(0);
  }, 60_000);
});

describe("the work of an instance that is lost", () => {
  it("goes to the other ruler", async () => {
    for (const name of groups) {
      const body = JSON.stringify({
        name,
        interval: "1s",
        rules: [{ alert: "Always", expr: "vector(1)" }],
      });
      const url = `${cluster.gateway}/loki/api/v1/rules/n`;
      expect((await fetch(url, { method: "POST", headers, body })).status).toBe(202);
    }
    expect((await ringOf("ruler")).map(({ id, tokens }) => [id, tokens.length])).toEqual([
      ["ruler-1", 128],
      ["ruler-2", 128],
    ]);
    await waitFor(() => allEvaluatedSince(0));
    expect(await evaluatedSince(0)).toEqual(groups);
    const lostMs = Date.now();
    await lose("ruler-1", "ruler");
    await waitFor(() => allEvaluatedSince(lostMs));
    expect(await evaluatedSince(lostMs)).toEqual(groups);
  }, 120_000);

  it("goes to the other compactor", async () => {
    expect((await ringOf("compactor")).map(({ state }) => state)).toEqual(["ACTIVE", "ACTIVE"]);
    await lose("compactor-1", "compactor");
    const [left, ...others] = await ringOf("compactor");
    expect([left?.id, left?.state, others]).toEqual(["compactor-2", "ACTIVE", []]);
    const url = `${cluster.gateway}/loki/api/v1/delete`;
    const query = new URLSearchParams({ query: '{app="a"}', start: "1700000000" });
    expect((await fetch(`${url}?${query}`, { method: "POST", headers })).status).toBe(204);
    expect(await (await fetch(url, { headers })).json()).toHaveLength(1);
  }, 60_000);

  it.each(["query-frontend", "query-scheduler", "index-gateway"])(
    "goes to the other %s, and no query fails",
    async (service) => {
      const query = new URLSearchParams({ query: '{app="a"}', since: "1h" });
      const url = `${cluster.gateway}/loki/api/v1/query_range?${query}`;
      const statuses: number[] = [];
      let isOver = false;
      const asking = Array.from({ length: 3 }, async () => {
        while (!isOver) {
          const answer = await fetch(url, { headers });
          await answer.arrayBuffer();
          statuses.push(answer.status);
        }
      });
      const more = async (count: number) => {
        const wanted = statuses.length + count;
        await waitFor(() => statuses.length >= wanted, 30_000);
      };
      await more(30);
      await cluster.end(`${service}-1`, "SIGKILL");
      await more(100);
      isOver = true;
      await Promise.all(asking);
      expect(statuses.filter((status) => status !== 200)).toEqual([]);
    },
    60_000,
  );
});
