import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { getJson, nowNs, pushJson, type QueryAnswer, queryLines } from "./testing/client.js";
import { Cluster } from "./testing/cluster.js";
import {
  filesBelow,
  metricsIn,
  metricsTold,
  queriesOf,
  readText,
  ruleQueries,
} from "./testing/deploy/repository.js";
import { enough, NumberedLines } from "./testing/numbered-lines.js";
import { waitFor } from "./testing/server.js";

interface FoundPatterns {
  readonly data: { readonly pattern: string; readonly samples: readonly [number, number][] }[];
}

interface KeptStats {
  readonly cache: { readonly result: { readonly entriesFound: number } };
}

let cluster: Cluster;
let lines: NumberedLines;

beforeAll(async () => {
  cluster = await Cluster.start({
    spares: ["ingester-4"],
    links: ["s3", "distributor-1>ingester-1", "querier-1>ingester-1"],
    // All tests below run with one clock that is wrong.
    clocks: { "ingester-3": 60_000 },
  });
  // The pause leaves processor time to services that start.
  lines = new NumberedLines(cluster.gateway, { pauseMs: 40 });
  lines.start();
}, 120_000);

afterAll(async () => {
  await lines?.stop();
  await cluster?.stop();
}, 60_000);

/** Makes the ingesters seal and upload their rows. */
async function flush(): Promise<void> {
  const answer = await fetch(`${cluster.gateway}/flush`, { method: "POST" });
  await answer.arrayBuffer();
}

/** The numbers of sealed segments, of uploads and of failed uploads of all ingesters. */
async function uploads(): Promise<{ sealed: number; done: number; failed: number }> {
  const texts = await Promise.all(
    cluster.services.map((url) =>
      fetch(`${url}/metrics`).then(
        (answer) => answer.text(),
        () => "",
      ),
    ),
  );
  const ingesters = texts.filter((text) => text.includes("loki_ingester_local_segments"));
  const sum = (name: RegExp) =>
    ingesters
      .flatMap((text) => [...text.matchAll(name)])
      .reduce((total, [, value]) => total + Number(value), 0);
  return {
    sealed: sum(/^loki_ingester_chunks_flushed_total\{.*\} (\d+)$/gm),
    done: sum(/^loki_objstore_bucket_operation_duration_seconds_count\{.*"upload"\} (\d+)$/gm),
    failed: sum(/^loki_objstore_bucket_operation_failures_total\{.*"upload"\} (\d+)$/gm),
  };
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
it("results are kept in Redis, and are asked for again where lines came since", async () => {
  const tenant = { "x-scope-orgid": "kept" };
  const timeNs = nowNs();
  const endNs = String(BigInt(timeNs) + 1_000_000_000n);
  const query = 'sum(count_over_time({app="k"}[5m]))';
  const params = { query, start: String(BigInt(endNs) - 600_000_000_000n), end: endNs, step: "60" };
  const ask = async () => {
    const path = "/loki/api/v1/query_range";
    const { data } = await getJson<QueryAnswer>(cluster.gateway, path, params, tenant);
    const { entriesFound } = (data.stats as unknown as KeptStats).cache.result;
    const [series] = data.result as { values: [number, string][] }[];
    return { entriesFound, last: series?.values.at(-1)?.[1] };
  };
  expect(await pushJson(cluster.gateway, { app: "k" }, [[timeNs, "one"]], tenant)).toBe(204);
  await waitFor(async () => {
    const { entriesFound, last } = await ask();
    return entriesFound > 0 && last === "1";
  });
  expect(await pushJson(cluster.gateway, { app: "k" }, [[timeNs, "two"]], tenant)).toBe(204);
  expect((await ask()).last).toBe("2");
}, 60_000);

describe("metrics of the services", () => {
  it("are all that alerts and dashboards ask for, but for those of deletion, which is off", async () => {
    await lines.more(enough);
    const texts = await Promise.all(
      cluster.services.map(async (url) => (await fetch(`${url}/metrics`)).text()),
    );
    const told = metricsTold(texts.join("\n"));
    const panels = filesBelow("deploy/grafana/dashboards").flatMap((path) =>
      queriesOf(JSON.parse(readText(path))),
    );
    const asked = new Set([...ruleQueries(), ...panels].flatMap(metricsIn));
    const missing = [...asked].filter((name) => !told.has(name) && !/_delete_/.test(name));
    expect(missing).toEqual([]);
    expect(asked.size).toBeGreaterThan(40);
    const members = /^loki_ring_members\{name="ingester",state="ACTIVE"\} 3$/m;
    expect(texts.filter((text) => members.test(text)).length).toBeGreaterThan(3);
    expect(texts.join("\n")).toMatch(
      /_count\{method="gRPC",route="[^"]*Push",status_code="success"/,
    );
  });
});

describe("no acknowledged line is lost, and none counted twice, while", () => {
  afterEach(async () => {
    // The failure of another service is not a fault of the program.
    expect(await cluster.faults()).toEqual([]);
  });

  it("one of every service that holds nothing is killed, and started again", async () => {
    const names = ["querier-1", "query-scheduler", "query-frontend", "index-gateway"];
    names.push("compactor", "ruler");
    const wrong = await lines.wrongCounts(async () => {
      await Promise.all(names.map((name) => cluster.end(name, "SIGKILL")));
      await lines.more(enough);
      await Promise.all(names.map((name) => cluster.start(name)));
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  it("the store is away: what nobody listed yet is 503, and uploads catch up", async () => {
    const tenant = { "x-scope-orgid": "stored" };
    const toldNs = nowNs();
    expect(await pushJson(cluster.gateway, { app: "s" }, [[toldNs, "old"]], tenant)).toBe(204);
    await flush();
    const askOld = async () => {
      const params = new URLSearchParams({ query: '{app="s"}', start: toldNs, end: nowNs() });
      const url = `${cluster.gateway}/loki/api/v1/query_range?${params}`;
      const answer = await fetch(url, { headers: tenant });
      return { status: answer.status, text: await answer.text() };
    };
    const wrong = await lines.wrongCounts(async () => {
      await cluster.cut("s3", "refuse");
      const before = await uploads();
      await flush();
      await waitFor(async () => (await uploads()).failed > before.failed);
      const { status, text } = await askOld();
      expect({ status, text }).toMatchObject({
        status: 503,
        text: expect.stringMatching(/s3|store/),
      });
      await lines.more(enough);
      await cluster.cut("s3", "pass");
      // Without a flush these uploads would be due in half an hour.
      await flush();
      await waitFor(async () => {
        const { sealed, done } = await uploads();
        return sealed > before.sealed && done >= sealed;
      });
    });
    expect(wrong).toEqual([]);
    await waitFor(async () => (await askOld()).status === 200);
    const old = await queryLines(cluster.gateway, '{app="s"}', {}, tenant);
    expect(old).toEqual(["old"]);
  }, 120_000);

  it("Redis is stopped, and comes back empty", async () => {
    const wrong = await lines.wrongCounts(async () => {
      await cluster.end("redis", "SIGKILL");
      await lines.more(enough);
      await cluster.start("redis");
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  it("each service is restarted in turn", async () => {
    const names = ["ingester-1", "ingester-2", "ingester-3", "distributor-1", "index-gateway"];
    const wrong = await lines.wrongCounts(async () => {
      for (const name of names) {
        await cluster.end(name, "SIGTERM");
        await lines.more(enough / 4);
        await cluster.start(name);
      }
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  it.each(["distributor-1>ingester-1", "querier-1>ingester-1"])(
    "nothing gets through any more from %s",
    async (link) => {
      const wrong = await lines.wrongCounts(async () => {
        await cluster.cut(link, "drop");
        await lines.more(enough);
        await lines.surelyCount();
        await cluster.cut(link, "pass");
      });
      expect(wrong).toEqual([]);
    },
    120_000,
  );

  it("an ingester stands still", async () => {
    const wrong = await lines.wrongCounts(async () => {
      await cluster.end("ingester-1", "SIGSTOP");
      await lines.more(enough);
      await lines.surelyCount();
      await cluster.end("ingester-1", "SIGCONT");
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  it("two of three ingesters stand still: pushes are 503, and say who is slow", async () => {
    const slow = ["ingester-1", "ingester-2"];
    const wrong = await lines.wrongCounts(async () => {
      for (const name of slow) await cluster.end(name, "SIGSTOP");
      const answer = await fetch(`${cluster.gateway}/loki/api/v1/push`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-scope-orgid": "slow" },
        body: JSON.stringify({ streams: [{ stream: { app: "slow" }, values: [[nowNs(), "x"]] }] }),
      });
      for (const name of slow) await cluster.end(name, "SIGCONT");
      expect([answer.status, await answer.text()]).toEqual([
        503,
        expect.stringMatching(/^ingester \S+: /),
      ]);
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  it("a distributor is killed", async () => {
    const wrong = await lines.wrongCounts(() => cluster.end("distributor-2", "SIGKILL"));
    expect(wrong).toEqual([]);
  }, 120_000);

  it("an ingester comes, and goes", async () => {
    const wrong = await lines.wrongCounts(async () => {
      await cluster.start("ingester-4");
      await lines.more(enough);
      await cluster.leave("ingester-4");
    });
    expect(wrong).toEqual([]);
  }, 120_000);

  // Queries right after an ingester left find its rows in the store.
  it("an ingester is lost for good", async () => {
    const wrong = await lines.wrongCounts(() => cluster.end("ingester-2", "SIGKILL"));
    expect(wrong).toEqual([]);
    await lines.stop();
    const numbers = await lines.numbers();
    expect(numbers).toEqual(Array.from({ length: lines.acknowledged }, (_, i) => i));
    expect(await lines.count()).toMatchObject({ seen: lines.acknowledged });
  }, 120_000);
});
