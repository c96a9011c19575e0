import { describe, expect, it } from "@jest/globals";
import { querierOf } from "@skald/contracts/testing/fakes";
import type { LeafPlan, LogPlan, MetricPlan } from "@skald/logql";
import { SkaldError } from "@skald/model";
import { parquetReadObjects } from "hyparquet";
import { Frontend } from "../frontend.js";
import {
  bodyOf,
  contextOf,
  error,
  limits,
  logs,
  makeApi,
  matrix,
  points,
  textOf,
  vector,
} from "../testing/api.js";

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

  it.each<[Record<string, string>, string[] | undefined]>([
    [{}, undefined],
    [{ limit: "2" }, undefined],
    [{ limit: "1" }, ["the limit of 1 lines was reached: there may be more"]],
    [{ interval: "90s" }, ["lines less than 1m30s behind another were left out, as interval asks"]],
  ])("warns of lines that are left out because of %j", async (params, warnings) => {
    const { call } = makeApi(logs);
    const answer = await call("/loki/api/v1/query_range", { query: '{app="a"}', ...params });
    expect(bodyOf(answer).warnings).toEqual(warnings);
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

  it.each([
    ["/loki/api/v1/query_range", "query"],
    ["/loki/api/v1/series", "match[]"],
    ["/loki/api/v1/format_query", "query"],
    ["/api/prom/query", "regexp"],
  ])("refuses a text of %s that is longer than max_query_bytes", async (path, name) => {
    const { call, bounds } = makeApi(logs, { max_query_bytes: 60 });
    const long = `{app="${"a".repeat(60)}"}`;
    await expect(call(path, { query: '{app="a"}', [name]: long })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /^the query has \d+ bytes, the limit is 60 \(max_query_bytes\)/,
      ),
    });
    expect(bounds).toEqual([]);
    expect((await call("/loki/api/v1/query_range", { query: '{app="a"}' })).status).toBe(200);
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
    const hanging = querierOf({
      query: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new SkaldError("cancelled", "stopped")));
        }),
    });
    const frontend = new Frontend({ clock: { nowMs: () => 0 } });
    const context = contextOf({ querier: hanging, limits: { ...limits, query_timeout: 1 } });
    const params = {
      query: '{app="a"}',
      startNs: 0n,
      endNs: 1n,
      stepNs: 1n,
      intervalNs: 0n,
      limit: 1,
      direction: "forward" as const,
    };
    await expect(frontend.run(frontend.planRange(params, context), context)).rejects.toEqual(
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

describe("the legacy query", () => {
  const paths = ["/api/legacy/query", "/api/prom/query"];

  it.each(paths)("answers %s with label texts and RFC 3339 times", async (path) => {
    const { call } = makeApi(logs);
    expect(bodyOf(await call(path, { query: '{app="a"}' })).streams).toEqual([
      {
        labels: '{app="a", trace="1"}',
        entries: [{ ts: "2026-11-18T11:06:40.000000001Z", line: '<b> "x"' }],
      },
    ]);
  });

  it.each(paths)("filters the lines of %s by regexp", async (path) => {
    const { call, plans } = makeApi(logs);
    await call(path, { query: '{app="a"} | json', regexp: "b.*x" });
    expect((plans[0] as LogPlan).log.stages).toEqual([
      { kind: "json", extractions: [] },
      { kind: "line_filter", op: "|~", alternatives: [{ kind: "text", value: "b.*x" }] },
    ]);
  });

  it.each([
    [{ query: '{app="a"}', regexp: "(" }, "error parsing regexp"],
    [{ query: 'rate({app="a"}[1m])', regexp: "a" }, "only log selector is supported"],
    [{ query: '{app="a"', regexp: "a" }, "parse error"],
  ])("refuses %j", async (params, text) => {
    const { call, plans } = makeApi(logs);
    await expect(call("/api/prom/query", params)).rejects.toEqual(error(400, text));
    expect(plans).toEqual([]);
  });

  it("refuses a metric query", async () => {
    const { call } = makeApi(matrix);
    await expect(call("/api/prom/query", { query: 'rate({app="a"}[1m])' })).rejects.toEqual(
      error(400, "legacy endpoints only support streams result type"),
    );
  });
});
