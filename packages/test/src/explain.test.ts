import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { getJson, type QueryAnswer } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";
import { fill } from "./testing/ui/site.js";

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

const lines = 20_000;
const endMs = Date.now();
const nsOf = (ms: number) => `${ms}000000`;
const range = { start: nsOf(endMs - 3_600_000), end: nsOf(endMs + 60_000) };
let server: TestServer;

beforeAll(async () => {
  server = await startServer(makeFolder(), ["-querier.cache-results=true"]);
  await fill(server, lines);
  // Half in segments, half in a head.
  await fetch(`${server.url}/flush`, { method: "POST" });
  await fill(server, lines);
});
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

const queries = [
  '{env="prod"}',
  '{app="web"} |= "timeout"',
  '{app="web"} |= "no such text anywhere"',
  '{app="payments"} |~ "time.*bank" | json | status = 500',
  '{app=~"web|api"} | logfmt | key = "k21"',
  '{app="web"} != "timeout"',
  'count_over_time({env="prod"}[1m])',
  'sum by (app) (rate({env="prod"}[1m]))',
  'sum(count_over_time({app="web"} |= "error" [1m]))',
  'sum by (detected_level) (count_over_time({env="prod"} [1m]))',
  'topk(3, sum by (user) (count_over_time({app="api"} | json | __error__="" [5m])))',
  'sum(rate({app="web"} |= "timeout" [1m])) / sum(rate({app="web"}[1m]))',
];

describe("explain", () => {
  it.each(queries)("never says less than %s reads, nor much more", async (query) => {
    const { parts, refusedBy } = await exactly(query);
    const said = parts.reduce((sum, { bytesToRead }) => sum + bytesToRead, 0);
    // The limit ends no query early.
    const { summary, skald } = await statsOf(query, 5000);
    const read = summary.totalBytesProcessed;
    const { total, refused, counted, read: blocksRead } = skald.blocks;
    expect(total).toBeGreaterThan(0);
    expect(blocksRead + refused + counted).toBeLessThanOrEqual(total);
    expect(read).toBeLessThanOrEqual(skald.bytesToRead);
    expect(skald.bytesToRead).toBeLessThanOrEqual(said);
    expect(Object.keys(skald.phases)).toEqual(["queue", "plan", "find", "scan", "merge", "encode"]);
    expect(skald.phases.scan).toBeGreaterThan(0);
    const isCut = query.startsWith("{") && !query.includes("|");
    expect(read).toBeLessThanOrEqual(said);
    if (!isCut) expect(said).toBeLessThanOrEqual(read * 1.2);
    expect(refusedBy).toBeNull();
  });

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
