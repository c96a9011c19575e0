import { describe, expect, it } from "@jest/globals";
import type { Querier, QueryByteLimits } from "@skald/contracts";
import type { LeafPlan, LogPlan, LogResult, MetricPlan, Plan, QueryResult } from "@skald/logql";
import { emptyReadStats, labelsFromObject, type QueryStats, SkaldError } from "@skald/model";
import { defaultLimits } from "@skald/runtime/config";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import { parquetReadObjects } from "hyparquet";
import { Frontend, type QueryFacts } from "../frontend.js";
import type { QueryTenantLimits } from "../limits/limits.js";
import { queryHandlers, queryRoutes } from "./routes.js";

const limits: QueryTenantLimits = { ...defaultLimits, query_timeout: 1000 };
const stats: QueryStats = {
  ingester: { ...emptyReadStats(), headBytes: 10, headLines: 1 },
  store: { ...emptyReadStats(), decompressedBytes: 20, decompressedLines: 2 },
  ingestersReached: 1,
  streams: 1,
  execSeconds: 0.5,
  queueSeconds: 0,
  entriesReturned: 1,
  shards: 1,
};

const app = labelsFromObject({ app: "a" });
const none = labelsFromObject({});
const metadata = labelsFromObject({ trace: "1" });
const line = new TextEncoder().encode('<b> "x"');
const logs: LogResult = {
  kind: "streams",
  rowCount: 1,
  timestamps: BigInt64Array.of(1_795_000_000_000_000_001n),
  labelSet: Uint32Array.of(0),
  lines: { bytes: line, offsets: Uint32Array.of(0, line.length) },
  labels: [
    {
      labels: labelsFromObject({ app: "a", trace: "1" }),
      categories: { stream: app, structuredMetadata: metadata, parsed: none },
    },
  ],
  warnings: [],
};
const points = { startNs: 1_795_000_000_000_000_000n, stepNs: 500_000_000n, count: 3 };
const matrix: QueryResult = {
  kind: "matrix",
  points,
  series: [{ labels: app, at: Uint32Array.of(0, 1), values: Float64Array.of(1, Number.NaN) }],
  warnings: [],
};
const vector: QueryResult = {
  kind: "vector",
  atNs: points.startNs,
  samples: [{ labels: app, value: 1e21 }],
  warnings: [],
};

/** `{app="a", env="x"}` and `{app="b"}`. */
const streams = {
  hashes: Uint32Array.of(1, 1, 2, 2),
  starts: Uint32Array.of(0, 2, 3),
  pairs: Uint32Array.of(0, 1, 2),
  names: ["app", "env"],
  pairNames: Uint32Array.of(0, 1, 0),
  values: { bytes: Buffer.from("axb"), offsets: Uint32Array.of(0, 1, 2, 3) },
  valueHashes: new Uint32Array(6),
};

function makeApi(
  result: QueryResult | LogResult,
  changed: Partial<QueryTenantLimits> = {},
  alignToStep = false,
) {
  const plans: Plan[] = [];
  const asked: unknown[] = [];
  const bounds: QueryByteLimits[] = [];
  const querier: Querier = {
    query: async ({ plan, limits: bound }) => {
      plans.push(plan);
      bounds.push(bound);
      return { result, stats };
    },
    streams: async (request) => {
      asked.push(request);
      return request.tenants.map((tenant) => ({ tenant, streams: [streams] }));
    },
    volumes: () => Promise.reject(new Error("not asked for")),
    labels: async (request) => {
      asked.push(request);
      const texts = { app: ["a", "b"], env: ["x"], none: [] }[request.label ?? "none"];
      return request.tenants.map((tenant) => ({
        tenant,
        texts: request.label === undefined ? ["app", "env"] : (texts ?? []),
      }));
    },
  };
  const frontend = new Frontend({
    querier,
    limitsOf: () => ({ ...limits, ...changed }),
    clock: { nowMs: () => 1_795_000_000_000 },
    alignToStep,
  });
  const handlers = queryHandlers(frontend, {
    authEnabled: true,
    noAuthTenant: "fake",
    multiTenantQueries: true,
    parquetAnswers: true,
  });
  const routes = queryRoutes((endpoint, request) => handlers[endpoint](request));
  const call = async (
    path: string,
    params: Record<string, string> | [string, string][],
    headers: Record<string, string> = {},
  ) => {
    const route = routes.find((candidate) => match(candidate.path, path) !== undefined);
    if (route === undefined) throw new Error(`no route for ${path}`);
    const request: HttpRequest = {
      method: "GET",
      path,
      variables: match(route.path, path) ?? {},
      headers: { "x-scope-orgid": "t", ...headers },
      params: new URLSearchParams(params),
      body: new Uint8Array(0),
      signal: new AbortController().signal,
    };
    return route.handler(request);
  };
  return { call, plans, bounds, asked };
}

function match(pattern: string, path: string): Record<string, string> | undefined {
  const names = [...pattern.matchAll(/:(\w+)/g)].map((found) => found[1] as string);
  const found = new RegExp(`^${pattern.replace(/:\w+/g, "([^/]+)")}$`).exec(path);
  return found === null
    ? undefined
    : Object.fromEntries(names.map((name, i) => [name, found[i + 1] as string]));
}

const textOf = ({ body }: HttpResponse) =>
  typeof body === "string" ? body : Buffer.concat([...(body as Iterable<Uint8Array>)]).toString();
const bodyOf = (response: HttpResponse) => JSON.parse(textOf(response));
const error = (status: number, text: string) =>
  expect.objectContaining({ status, message: expect.stringContaining(text) });

describe("query_range", () => {
  it("answers rows with all labels merged, and the reference's escapes", async () => {
    const { call } = makeApi(logs);
    const text = textOf(await call("/service/api/v1/query_range", { query: '{app="a"}' }));
    expect(JSON.parse(text).data).toMatchObject({
      resultType: "streams",
      result: [{ stream: { app: "a", trace: "1" }, values: [["1795000000000000001", '<b> "x"']] }],
      stats: {
        summary: { totalBytesProcessed: 30, totalLinesProcessed: 3, linesProcessedPerSecond: 6 },
      },
    });
    expect(text).toContain("\\u003cb\\u003e");
  });

  it("keeps labels apart when asked to", async () => {
    const { call } = makeApi(logs);
    const headers = { "x-loki-response-encoding-flags": "other,categorize-labels" };
    const { data } = bodyOf(
      await call("/loki/api/v1/query_range", { query: '{app="a"}' }, headers),
    );
    expect(data.encodingFlags).toEqual(["categorize-labels"]);
    expect(data.result).toEqual([
      {
        stream: { app: "a" },
        values: [["1795000000000000001", '<b> "x"', { structuredMetadata: { trace: "1" } }]],
      },
    ]);
  });

  it("writes samples as seconds and text", async () => {
    const { call } = makeApi(matrix);
    const { data } = bodyOf(
      await call("/loki/api/v1/query_range", { query: 'rate({app="a"}[1m])' }),
    );
    expect(data.result).toEqual([
      {
        metric: { app: "a" },
        values: [
          [1_795_000_000, "1"],
          [1_795_000_000.5, "NaN"],
        ],
      },
    ]);
  });

  it("answers in Parquet to who accepts only that", async () => {
    const { call } = makeApi(logs);
    const response = await call(
      "/loki/api/v1/query_range",
      { query: '{app="a"}' },
      { accept: "application/vnd.apache.parquet" },
    );
    expect(response.headers).toEqual({ "content-type": "application/vnd.apache.parquet" });
    const file = (response.body as Uint8Array).slice().buffer;
    expect(await parquetReadObjects({ file })).toEqual([
      { timestamp: new Date(1_795_000_000_000), labels: { app: "a", trace: "1" }, line: '<b> "x"' },
    ]);
  });

  it.each([
    [
      { query: '{app="a"}', limit: "5001" },
      {},
      "max entries limit per query exceeded, limit > max_entries_limit_per_query (5001 > 5000)",
    ],
    [
      { query: '{app="a"}', start: "0" },
      {},
      "the query time range exceeds the limit (query length: ",
    ],
    [
      { query: '{app="a"}', since: "31d" },
      {},
      "the query time range exceeds the limit (query length: 744h0m0s, limit: 30d1h)",
    ],
    [
      { query: 'rate({app="a"}[31d])', since: "1m" },
      {},
      "the query time range exceeds the limit (query length: 744h1m0s, limit: 30d1h)",
    ],
    [
      { query: 'rate({app="a"}[30d])', since: "2h" },
      {},
      "the query time range exceeds the limit (query length: 722h0m0s, limit: 30d1h)",
    ],
    [
      { query: 'rate({app="a"}[2h])' },
      { max_query_range: 3_600_000 },
      "[interval] value exceeds limit: [2h] > [1h]",
    ],
    [
      { query: '{app="a"}' },
      { required_labels: ["env"] },
      "stream selector is missing required matchers [env], labels present in the query were [app]",
    ],
    [
      { query: '{app="a"}' },
      { minimum_labels_number: 2 },
      "stream selector has less label matchers than required",
    ],
    [
      { query: '{app="a", b="c"}' },
      { max_streams_matchers_per_query: 1 },
      "max streams matchers per query exceeded, matchers-count > limit (2 > 1)",
    ],
    [
      { query: '{app="a"}' },
      {
        blocked_queries: [
          { pattern: "app=", regex: true, hash: 0, types: ["limited"], query_tags: "" },
        ],
      },
      "query blocked by policy",
    ],
    [{ query: '{app="a"} |~ "["' }, {}, "parse error"],
    [{ query: 'rate({app="a"} | line_format "{{.x" [1m])' }, {}, "invalid line template"],
  ])("refuses %j with %j", async (params, changed, text) => {
    const { call } = makeApi(logs, changed);
    await expect(
      call("/loki/api/v1/query_range", params as Record<string, string>),
    ).rejects.toEqual(error(400, text));
  });

  it.each([
    ["a graph as long as the limit", { query: 'rate({app="a"}[5m])', since: "30d1h" }],
    ["windows as long as the limit", { query: 'rate({app="a"}[30d])', since: "1h" }],
    ["a long graph of long windows", { query: 'rate({app="a"}[15d])', since: "25d" }],
    ["empty parameters", { query: '{app="a"}', interval: "", step: "", limit: "", since: "" }],
  ])("answers %s", async (_name, params: Record<string, string>) => {
    const { call, plans } = makeApi(matrix);
    await call("/loki/api/v1/query_range", params);
    expect(plans).toHaveLength(1);
  });

  it("shortens a query to the look-back window before its length is checked", async () => {
    const hourNs = 3_600_000_000_000n;
    const { call, plans, asked } = makeApi(matrix, { max_query_lookback: 3_600_000 });
    const oldestNs = points.startNs - hourNs;
    const since = "60d";
    await call("/loki/api/v1/query_range", { query: '{app="a"}', since });
    await call("/loki/api/v1/query_range", { query: 'rate({app="a"}[2h])', since, step: "3600" });
    await call("/loki/api/v1/query", { query: 'rate({app="a"}[2h])' });
    await call("/loki/api/v1/labels", { since });
    expect(plans).toMatchObject([
      { fromNs: oldestNs, toNs: points.startNs },
      { points: { startNs: oldestNs, count: 2 }, leaves: [{ fromNs: oldestNs }] },
      { points: { startNs: points.startNs, count: 1 }, leaves: [{ fromNs: oldestNs }] },
    ]);
    expect(asked).toMatchObject([{ fromNs: oldestNs, toNs: points.startNs + 1n }]);
  });

  it("asks for no row when all of the query is too old", async () => {
    const { call, plans, asked } = makeApi(matrix, { max_query_lookback: 1000 });
    const range = { start: "1794000000", end: "1794000060" };
    await call("/loki/api/v1/query_range", { query: '{app="a"}', ...range });
    await call("/loki/api/v1/query_range", { query: 'rate({app="a"}[1m])', ...range });
    const [log, metric] = plans as [LogPlan, MetricPlan];
    for (const { fromNs, toNs } of [log, metric.leaves[0] as LeafPlan]) {
      expect(fromNs).toBeGreaterThan(toNs);
    }
    expect(bodyOf(await call("/loki/api/v1/labels", range)).data).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("moves both ends of a graph to multiples of the step where configured", async () => {
    const { call, plans } = makeApi(matrix, {}, true);
    const range = { start: "1794999931", end: "1795000019.5", step: "30" };
    await call("/loki/api/v1/query_range", { query: 'rate({app="a"}[1m])', ...range });
    await call("/loki/api/v1/query_range", { query: '{app="a"}', ...range });
    expect(plans).toMatchObject([
      { points: { startNs: 1_794_999_930_000_000_000n, stepNs: 30_000_000_000n, count: 3 } },
      { fromNs: 1_794_999_931_000_000_000n, toNs: 1_795_000_019_500_000_000n },
    ]);
  });

  it("tells the querier how many bytes a query may read and hold", async () => {
    const { call, bounds } = makeApi(logs, { max_query_bytes_read: 1000 });
    await call("/loki/api/v1/query_range", { query: '{app="a"}' });
    expect(bounds).toEqual([{ maxBytesRead: 1000, maxMemoryBytes: 512 * 1024 * 1024 }]);
  });

  it("has the last point of a graph at or before its end", async () => {
    const { call, plans } = makeApi(matrix);
    const params = {
      query: 'rate({app="a"}[1m])',
      start: "1794999940",
      end: "1794999999.5",
      step: "60",
    };
    await call("/loki/api/v1/query_range", params);
    expect(plans[0]).toMatchObject({ points: { count: 1 } });
  });

  it("gives up after the time limit", async () => {
    const hanging: Querier = {
      query: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new SkaldError("cancelled", "stopped")));
        }),
      streams: async () => [],
      volumes: () => Promise.reject(new Error("not asked for")),
      labels: async () => [],
    };
    const frontend = new Frontend({
      querier: hanging,
      limitsOf: () => ({ ...limits, query_timeout: 1 }),
      clock: { nowMs: () => 0 },
    });
    const params = {
      query: '{app="a"}',
      startNs: 0n,
      endNs: 1n,
      stepNs: 1n,
      intervalNs: 0n,
      limit: 1,
      direction: "forward" as const,
    };
    await expect(frontend.queryRange(["t"], params, new AbortController().signal)).rejects.toEqual(
      error(504, "request timed out"),
    );
  });
});

describe("query", () => {
  it("writes numbers without an exponent", async () => {
    const { call } = makeApi(vector);
    const { data } = bodyOf(await call("/service/api/v1/query", { query: "vector(1)" }));
    expect(data).toMatchObject({
      resultType: "vector",
      result: [{ metric: { app: "a" }, value: [1_795_000_000, "1000000000000000000000"] }],
    });
  });

  it("refuses log queries", async () => {
    const { call } = makeApi(logs);
    await expect(call("/loki/api/v1/query", { query: '{app="a"}' })).rejects.toEqual(
      error(400, "log queries are not supported as an instant query type"),
    );
  });
});

describe("statistics", () => {
  it("say what was measured, and nothing of what was not", async () => {
    const { call } = makeApi(logs);
    const range = { query: '{app="a"}', start: "1", end: "2" };
    const { summary, ingester, store, querier } = bodyOf(
      await call("/loki/api/v1/query_range", range),
    ).data.stats;
    expect(summary).toEqual({
      bytesProcessedPerSecond: 60,
      linesProcessedPerSecond: 6,
      totalBytesProcessed: 30,
      totalLinesProcessed: 3,
      execTime: 0.5,
      queueTime: 0,
      subqueries: 0,
      totalEntriesReturned: 1,
      shards: 1,
      totalPostFilterLines: 0,
    });
    for (const side of [ingester, store, querier])
      expect(JSON.stringify(side)).not.toMatch(/StructuredMetadata|chunkRefsFetchTime/);
  });

  it("are told to whoever counts, of queries that were run", async () => {
    const told: QueryFacts[] = [];
    const onQuery = (facts: QueryFacts) => void told.push(facts);
    const ask = async (query: string, fails?: Error) => {
      const answer = { result: logs, stats };
      const frontend = new Frontend({
        querier: {
          query: () => (fails === undefined ? Promise.resolve(answer) : Promise.reject(fails)),
          streams: () => Promise.resolve([]),
          volumes: () => Promise.reject(new Error("not asked for")),
          labels: () => Promise.resolve([]),
        },
        limitsOf: () => limits,
        clock: { nowMs: () => 1_795_000_000_000 },
        queueSeconds: 3,
        onQuery,
      });
      const params = { startNs: 1n, endNs: 2n, stepNs: 1n, intervalNs: 0n, limit: 1 };
      const { signal } = new AbortController();
      return frontend.queryRange(["t"], { ...params, query, direction: "forward" }, signal);
    };
    expect((await ask('{app="a"}')).stats.queueSeconds).toBe(3);
    await ask('{app="a"} |= "x"');
    await expect(ask('{app="a"} |=')).rejects.toThrow();
    await expect(ask('{app="a"}', new Error("bug"))).rejects.toThrow("bug");
    const late = new SkaldError("deadline_exceeded", "late");
    await expect(ask('count_over_time({app="a"}[1m])', late)).rejects.toThrow("late");
    expect(
      told.map(({ status, type, range, stats: s }) => [status, type, range, s?.shards]),
    ).toEqual([
      [200, "limited", "range", 1],
      [200, "filter", "range", 1],
      [504, "metric", "range", undefined],
    ]);
  });
});

describe("labels, values and series", () => {
  it.each([
    ["/service/api/v1/labels", ["app", "env"]],
    ["/loki/api/v1/label", ["app", "env"]],
    ["/api/prom/label", ["app", "env"]],
    ["/service/api/v1/label/app/values", ["a", "b"]],
    ["/api/legacy/label/env/values", ["x"]],
    ["/loki/api/v1/label/nope/values", []],
  ])("%s", async (path, data) => {
    const { call } = makeApi(logs);
    expect(bodyOf(await call(path, {}))).toEqual({ status: "success", data });
  });

  it("adds the tenant to streams of several tenants", async () => {
    const { call } = makeApi(logs);
    const headers = { "x-scope-orgid": "t2|t1" };
    expect(bodyOf(await call("/loki/api/v1/labels", {}, headers)).data).toEqual([
      "__tenant_id__",
      "app",
      "env",
    ]);
    expect(bodyOf(await call("/loki/api/v1/label/__tenant_id__/values", {}, headers)).data).toEqual(
      ["t1", "t2"],
    );
    expect(
      bodyOf(await call("/loki/api/v1/series", { "match[]": '{app="b"}' }, headers)).data,
    ).toContainEqual({
      __tenant_id__: "t1",
      app: "b",
    });
  });

  it("name the one tenant that there is", async () => {
    const { call } = makeApi(logs);
    const headers = { "x-scope-orgid": "t1" };
    const { data } = bodyOf(await call("/loki/api/v1/label/__tenant_id__/values", {}, headers));
    expect(data).toEqual(["t1"]);
  });

  it("needs a selector for series, and takes `{}` only alone", async () => {
    const { call, asked } = makeApi(logs);
    await expect(call("/loki/api/v1/series", {})).rejects.toEqual(
      error(400, "at least one match[] is required"),
    );
    await expect(
      call("/loki/api/v1/series", [
        ["match[]", "{}"],
        ["match[]", '{a="b"}'],
      ]),
    ).rejects.toEqual(error(400, "0 matchers in group: {}"));
    await call("/loki/api/v1/series", { match: "{}" });
    expect(asked).toMatchObject([{ selectors: [] }]);
  });

  it.each([
    ["labels", {}],
    ["series", { match: "{}" }],
  ])("refuses %s of a range that ends before it begins", async (path, params) => {
    const { call } = makeApi(logs);
    const range = { start: "1794999999", end: "1794999998" };
    await expect(call(`/loki/api/v1/${path}`, { ...params, ...range })).rejects.toEqual(
      error(400, "this data is no longer available, it is past now - max_query_lookback (0s)"),
    );
  });

  it.each(['{app="a"} |= "x"', 'rate({a="b"}[1m])'])("takes only matchers: %s", async (query) => {
    const { call } = makeApi(logs);
    await expect(call("/loki/api/v1/labels", { query })).rejects.toEqual(
      error(400, "only label matchers are supported"),
    );
  });
});

describe("format_query", () => {
  it("answers the pretty form or what is wrong", async () => {
    const { call } = makeApi(logs);
    expect(bodyOf(await call("/loki/api/v1/format_query", { query: '{a=   "b"}|="x"' }))).toEqual({
      status: "success",
      data: '{a="b"} |= "x"',
    });
    const bad = await call("/service/api/v1/format_query", { query: "{" });
    expect(bad.status).toBe(400);
    expect(bodyOf(bad)).toMatchObject({
      status: "invalid-query",
      error: expect.stringContaining("parse error"),
    });
  });
});
