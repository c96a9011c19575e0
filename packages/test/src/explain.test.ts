import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { getJson, type QueryAnswer, readMetric } from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

interface Explanation {
  readonly parts: readonly {
    readonly streams: number;
    readonly entries: number;
    readonly bytes: number;
    readonly bytesToRead: number;
    readonly answeredBy: string;
  }[];
  readonly cached: boolean;
  readonly exact: boolean;
  readonly refusedBy: string | null;
}

const rounds = 10;
const linesPerRound = 2000;
const lines = rounds * linesPerRound;
const endMs = Date.now();
const nsOf = (ms: number) => `${ms}000000`;
const range = { start: nsOf(endMs - 3_600_000), end: nsOf(endMs + 60_000) };
const folder = makeFolder();
let server: TestServer;

const start = async (...flags: string[]) => {
  server = await startServer(folder, ["-querier.cache-results=true", ...flags]);
};

/** Lines of the kinds that the queries below look for, over the last half hour; a tenth of them in each round. */
async function push(round: number): Promise<void> {
  const from = round * linesPerRound;
  const timeOf = (i: number) => nsOf(endMs - 1_800_000 + Math.floor((i * 1_800_000) / lines));
  const numbers = Array.from({ length: linesPerRound }, (_, i) => from + i);
  const streams = ["web", "api", "payments", "edge"].map((app, a) => ({
    stream: { app, pod: `${app}-0`, env: "prod" },
    values: numbers
      .filter((i) => i % 4 === a)
      .map((i) => [timeOf(i), lineOf(app, i), { trace_id: `t${i}`, user: `u${i % 50}` }]),
  }));
  const body = JSON.stringify({ streams });
  const headers = { "content-type": "application/json" };
  const url = `${server.url}/loki/api/v1/push`;
  expect((await fetch(url, { method: "POST", headers, body })).status).toBe(204);
}

function lineOf(app: string, i: number): string {
  const level = i % 7 === 0 ? "error" : "info";
  const msg = i % 3 === 0 ? "timeout while calling bank" : "order stored";
  const status = i % 11 === 0 ? 500 : 200;
  const seldom = i % 4000 === 0 ? " Connection Reset by peer" : "";
  if (app === "edge") return `10.0.0.1 - - [x] "GET /api/v1/orders/${i} HTTP/1.1" ${status} 12`;
  if (app === "web") return `level=${level} msg="${msg}${seldom}" status=${status} key=k${i}`;
  return JSON.stringify({ level, msg: msg + seldom, status, duration_ms: i % 977 });
}

const flush = async () => {
  expect((await fetch(`${server.url}/flush`, { method: "POST" })).status).toBe(204);
};

afterAll(async () => {
  await server?.kill("SIGTERM");
  await removeFolders();
});

const explain = (query: string, more = {}) =>
  getJson<Explanation>(server.url, "/service/api/v1/explain", { query, ...range, ...more });

/** The explanation when all headers were looked at: the first look at a segment takes longer. */
async function exactly(query: string): Promise<Explanation> {
  let found = await explain(query);
  await until(async () => {
    found = await explain(query);
    return found.exact;
  });
  return found;
}

interface Stats {
  readonly summary: { readonly totalBytesProcessed: number };
  readonly skald: {
    readonly phases: Readonly<Record<string, number>>;
    readonly blocks: Readonly<Record<"total" | "read" | "refused" | "counted", number>>;
    readonly bytesToRead: number;
  };
}

async function statsOf(query: string, limit: number): Promise<Stats> {
  const params = { query, ...range, limit: String(limit), step: "60" };
  const fresh = { "cache-control": "no-cache" };
  const path = "/loki/api/v1/query_range";
  const { data } = await getJson<QueryAnswer>(server.url, path, params, fresh);
  return data.stats as unknown as Stats;
}

/** The forms of the queries of a benchmark. */
const queries = [
  '{env="prod"} |= "k4321 "',
  '{env="prod"} |= "no such text anywhere"',
  '{app="web"} |= "key=k8000"',
  'sum(count_over_time({env="prod"} |= "Connection Reset" [1h]))',
  '{env="prod"} |= "Connection Reset"',
  'sum(count_over_time({env="prod"} |= "error" != "timeout" [1h]))',
  '{env="prod"} |= "error" |= "stored" != "timeout"',
  'sum(count_over_time({app="edge"} |~ `GET /api/v[12]/orders/[0-9]+(\\?[^ ]*)? HTTP/1\\.1" 50[0-9]` [1h]))',
  'sum(count_over_time({env="prod"} |~ `(?i)connection reset by peer` [1h]))',
  'sum(count_over_time({app="payments"} | json | status >= 500 | duration_ms > 500 [1h]))',
  '{app="payments"} | json | status >= 500 | duration_ms > 500',
  'sum(count_over_time({app="payments"} | json status="status" | status >= 500 [1h]))',
  'sum by (level) (count_over_time({app="payments"} | json [1m]))',
  'sum(count_over_time({app="web"} | logfmt | status="500" [1h]))',
  'sum by (status) (count_over_time({app="web"} | logfmt [5m]))',
  'sum by (status) (count_over_time({app="edge"} | pattern `<ip> - <_> [<_>] "<method> <path> <_>" <status> <_>` [1m]))',
  'quantile_over_time(0.99, {app="payments"} | json | unwrap duration_ms | __error__="" [5m]) by (app)',
  'sum by (app) (rate({env="prod"}[1m]))',
  'sum by (app) (count_over_time({env="prod"} |= "error" [1m]))',
  'sum by (app) (count_over_time({env="prod"}[1h]))',
  'sum by (env) (bytes_over_time({env="prod"}[5m]))',
  'topk(10, sum by (pod) (rate({env="prod"} |= "error" [5m])))',
  '{app="payments"} | trace_id="t4002"',
  'sum(count_over_time({app="payments"} | user="u42" [1h]))',
  '{app="payments"}',
  '{env="prod"}',
  '{app="web"} != "timeout"',
  'sum by (detected_level) (count_over_time({env="prod"} [1m]))',
  'topk(3, sum by (user) (count_over_time({app="api"} | json | __error__="" [5m])))',
  'sum(rate({app="web"} |= "timeout" [1m])) / sum(rate({app="web"}[1m]))',
];

/** Those that a limit ends early. */
const limits: Readonly<Record<string, number>> = {
  '{app="payments"}': 1000,
  '{env="prod"}': 5000,
  '{app="web"} != "timeout"': 10,
};

/** Where the rows are, and what brings them there. */
const places: readonly (readonly [string, () => Promise<void>])[] = [
  [
    "held",
    async () => {
      await start();
      await push(0);
      await push(1);
    },
  ],
  [
    "sealed, and held",
    async () => {
      await flush();
      await push(2);
    },
  ],
  [
    "sealed in as many segments as are merged",
    async () => {
      for (let round = 3; round < rounds; round++) {
        await push(round);
        await flush();
      }
    },
  ],
  [
    "merged",
    async () => {
      await server.kill("SIGTERM");
      await start("-compactor.compaction-interval=100ms");
      await waitFor(async () => (await readMetric(server.url, "loki_compactor_merges_total")) > 0);
    },
  ],
];

describe.each(places)("explain, of rows that are %s,", (_, bring) => {
  beforeAll(bring);

  it.each(queries)("never says less than %s reads, nor much more", async (query) => {
    const limit = limits[query];
    const { parts, refusedBy } = await exactly(query);
    const said = parts.reduce((sum, { bytesToRead }) => sum + bytesToRead, 0);
    const { summary, skald } = await statsOf(query, limit ?? 5000);
    const read = summary.totalBytesProcessed;
    const { total, refused, counted, read: blocksRead } = skald.blocks;
    expect(total).toBeGreaterThan(0);
    expect(blocksRead + refused + counted).toBeLessThanOrEqual(total);
    expect(read).toBeLessThanOrEqual(skald.bytesToRead);
    expect(skald.bytesToRead).toBeLessThanOrEqual(said);
    expect(Object.keys(skald.phases)).toEqual(["queue", "plan", "find", "scan", "merge", "encode"]);
    expect(read).toBeLessThanOrEqual(said);
    if (limit === undefined) expect(said).toBeLessThanOrEqual(read * 1.2);
    expect(refusedBy).toBeNull();
  });
});

describe("explain", () => {
  it("says what a selector holds", async () => {
    const { parts } = await explain('{app="web"} |= "timeout"');
    expect(parts).toMatchObject([{ streams: 1, answeredBy: "scan" }]);
    expect(parts[0]!.entries).toBeGreaterThanOrEqual(lines / 4);
  });

  it("says where headers answer", async () => {
    const { parts } = await explain('sum(count_over_time({app="web"}[3h]))', { start: range.end });
    expect(parts).toMatchObject([{ answeredBy: "headers", bytesToRead: 0 }]);
  });

  it("says what a limit will refuse, and what is no query", async () => {
    const day = 24 * 3_600_000;
    const { refusedBy } = await explain('{app="web"}', { start: nsOf(endMs - 60 * day) });
    expect(refusedBy).toContain("the query time range exceeds the limit");
    await expect(explain('{app="web"} | | ')).rejects.toThrow("answered 400: parse error");
  });
});

describe("errors, to a client that accepts only JSON,", () => {
  const asked = async (query: string, more = {}) => {
    const params = new URLSearchParams({ query, ...range, ...more });
    const headers = { accept: "application/json" };
    const answer = await fetch(`${server.url}/loki/api/v1/query_range?${params}`, { headers });
    return { status: answer.status, body: await answer.json() };
  };

  it("have the place in the query and a hint", async () => {
    expect(await asked('sum(rat({app="web"}[1m]))')).toEqual({
      status: 400,
      body: {
        status: "error",
        error: "parse error at line 1, col 5: syntax error: unexpected IDENTIFIER",
        position: { offset: 4, line: 1, column: 5 },
        hint: expect.stringContaining("rate"),
      },
    });
  });

  it("have the key of the limit that was reached", async () => {
    const { status, body } = await asked('{app="web"}', { limit: "5001" });
    expect([status, body]).toMatchObject([400, { limit: "max_entries_limit_per_query" }]);
  });
});
