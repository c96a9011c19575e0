import { describe, expect, it } from "@jest/globals";
import type { VolumeAnswer, VolumeRequest } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { emptyReadStats, labelsFromObject } from "@skald/model";
import { defaultLimits } from "@skald/runtime/config";
import { Frontend } from "../frontend.js";
import type { QueryTenantLimits } from "../limits/limits.js";
import { serverOf } from "../testing/api.js";
import { type QueryEndpoint, queryEndpoints } from "./endpoints.js";

const secondNs = 1_000_000_000n;
const start = 1_795_000_000n;
const stats = {
  ...{ ingester: emptyReadStats(), store: emptyReadStats(), ingestersReached: 1, streams: 1 },
  ...{ execSeconds: 0.5, queueSeconds: 0, entriesReturned: 0, shards: 1 },
};
/** a has 10 bytes in bucket 0 and 5.4 in bucket 2, b has 90 in bucket 1, c as much. */
const answer: VolumeAnswer = {
  groups: ["a", "c", "b"].map((app) => labelsFromObject({ app })),
  group: Uint32Array.of(0, 0, 2, 1),
  bucket: Uint32Array.of(2, 0, 1, 1),
  rows: Float64Array.of(1, 2, 3, 3),
  bytes: Float64Array.of(5.4, 10, 90, 90),
  ...{ blocks: 4, blockBytes: 9, streamCount: 3, stats, warnings: [] },
};

function apiOf(limits: Partial<QueryTenantLimits> = {}) {
  const asked: VolumeRequest[] = [];
  const querier = querierOf({
    volumes: async (request) => {
      asked.push(request);
      return answer;
    },
  });
  const frontend = new Frontend({ clock: { nowMs: () => Number(start + 3600n) * 1000 } });
  const serve = serverOf(frontend, { querier, limits: { ...defaultLimits, ...limits } });
  const call = async (
    endpoint: QueryEndpoint,
    params: Record<string, string>,
    headers: Record<string, string> = {},
  ) => {
    const { body } = await serve(endpoint, {
      ...{ method: "GET", path: "", body: new Uint8Array(0) },
      headers: { "x-scope-orgid": headers.tenants ?? "t" },
      variables: { name: "x" },
      params: new URLSearchParams({ start: String(start), end: String(start + 100n), ...params }),
      signal: new AbortController().signal,
    });
    return typeof body === "string"
      ? body
      : Buffer.concat([...(body as Iterable<Uint8Array>)]).toString();
  };
  return { call, asked };
}

const selector = { query: '{app=~"a|b"}' };

describe("volumes", () => {
  it("are a vector at the end of the range, largest first, then by name", async () => {
    const { call, asked } = apiOf();
    const { status, data } = JSON.parse(await call("index_volume", { ...selector, limit: "2" }));
    const metrics = [
      { metric: { app: "b" }, value: [1_795_000_100, "90"] },
      { metric: { app: "c" }, value: [1_795_000_100, "90"] },
    ];
    expect([status, data.resultType, data.result]).toEqual(["success", "vector", metrics]);
    expect(data.stats.summary.execTime).toBe(0.5);
    expect(asked[0]).toMatchObject({
      fromNs: start * secondNs,
      toNs: (start + 100n) * secondNs,
      buckets: { firstNs: start * secondNs, stepNs: 100n * secondNs, count: 1 },
      maxGroups: 1000,
    });
  });

  it("are a matrix of buckets at multiples of the step", async () => {
    const { call, asked } = apiOf();
    const params = { ...selector, start: String(start + 5n), step: "50" };
    const { data } = JSON.parse(await call("index_volume_range", params));
    expect(data.resultType).toBe("matrix");
    expect(data.result[2]).toEqual({
      metric: { app: "a" },
      values: [
        [1_795_000_049.999, "10"],
        [1_795_000_100, "5"],
      ],
    });
    const buckets = { firstNs: start * secondNs, stepNs: 50n * secondNs, count: 2 };
    expect(asked[0]?.buckets).toEqual(buckets);
  });

  it.each([
    ["matchers", { query: '{b="x",a=~".+"}' }, { kind: "series", names: ["a", "b"] }, 0],
    ["everything", { query: "{}" }, { kind: "series" }, 0],
    [
      "target labels",
      { ...selector, targetLabels: "pod,app" },
      { kind: "series", names: ["app", "pod"] },
      1,
    ],
    ["label names", { ...selector, aggregateBy: "labels" }, { kind: "names" }, 0],
    [
      "some label names",
      { ...selector, aggregateBy: "labels", targetLabels: "pod" },
      { kind: "names", names: ["pod"] },
      1,
    ],
  ])("are grouped by %s", async (_case, params, groupBy, implied) => {
    const { call, asked } = apiOf();
    await call("index_volume", params);
    expect(asked[0]?.groupBy).toEqual(groupBy);
    const pods = asked[0]?.matchers.filter(({ name }) => name === "pod");
    expect(pods).toEqual(implied === 0 ? [] : [{ name: "pod", op: "=~", value: ".+" }]);
  });

  it.each([
    ["index_volume", {}, 400, "parse error : syntax error: unexpected $end"],
    ["index_volume", { query: '{a="b"} |= "x"' }, 400, "only label matchers are supported"],
    ["index_volume", { ...selector, aggregateBy: "x" }, 400, "invalid aggregation option"],
    ["index_volume", { ...selector, limit: "-1" }, 400, "limit must be a positive value"],
    [
      "index_volume",
      { ...selector, end: "1" },
      400,
      "end timestamp must not be before or equal to start time",
    ],
    ["index_volume_range", { ...selector, step: "x" }, 400, 'cannot parse "x" to a valid duration'],
    [
      "index_shards",
      { ...selector, targetBytesPerShard: "x" },
      400,
      "could not parse 'targetBytesPerShard' parameter",
    ],
    [
      "index_shards",
      { ...selector, targetBytesPerShard: "5constructor" },
      400,
      "could not parse 'targetBytesPerShard' parameter",
    ],
    ["detected_fields", { query: 'rate({a="b"}[1m])' }, 400, "only log selector is supported"],
    ["detected_fields", { ...selector, limit: "x" }, 400, 'strconv.Atoi: parsing "x"'],
    [
      "detected_fields",
      { ...selector, line_limit: "0" },
      400,
      "line_limit must be a positive value",
    ],
  ] as const)(
    "and others refuse what they cannot read: %s %j",
    async (endpoint, params, status, text) => {
      await expect(apiOf().call(endpoint, params as Record<string, string>)).rejects.toMatchObject({
        status,
        message: expect.stringContaining(text),
      });
    },
  );

  it("are not there where the tenant may not have them", async () => {
    const { call } = apiOf({ volume_enabled: false });
    const refused = { status: 404, message: "not found" };
    await expect(call("index_volume", selector)).rejects.toMatchObject(refused);
  });

  it("take the limit of series, and 0 as no limit of its own", async () => {
    const { call, asked } = apiOf({ volume_max_series: 3 });
    await call("index_volume", { ...selector, limit: "0" });
    expect(asked[0]?.maxGroups).toBe(3);
  });

  it("are empty before the time that may be looked at", async () => {
    const { call, asked } = apiOf({ max_query_lookback: 1000 });
    const { data } = JSON.parse(await call("index_volume", selector));
    expect([data.result, asked]).toEqual([[], []]);
  });
});

describe("index statistics", () => {
  it("count streams, blocks, rows and bytes", async () => {
    const { call, asked } = apiOf();
    const found = JSON.parse(await call("index_stats", selector));
    expect(found).toEqual({ streams: 3, chunks: 4, bytes: 5, entries: 1 });
    expect(asked[0]).toMatchObject({ groupBy: { kind: "series", names: [] }, countsStreams: true });
  });

  it("count the streams of each tenant", async () => {
    const { call, asked } = apiOf();
    const found = JSON.parse(await call("index_stats", selector, { tenants: "t|u" }));
    expect(found).toEqual({ streams: 6, chunks: 8, bytes: 10, entries: 2 });
    expect(asked.map(({ tenants }) => tenants)).toEqual([["t"], ["u"]]);
  });

  it("are shared out among shards that are small enough", async () => {
    const text = await apiOf().call("index_shards", { ...selector, targetBytesPerShard: "2" });
    expect(JSON.parse(text).shards.map(({ stats: one }: { stats: object }) => one)).toEqual(
      Array.from({ length: 4 }, () => ({ streams: 1, chunks: 1, bytes: 2, entries: 1 })),
    );
    expect(text).toContain('{"min":0,"max":4611686018427387903}');
    expect(text).toContain('"max":18446744073709551615}');
    const whole = JSON.parse(await apiOf().call("index_shards", selector));
    expect(whole.shards).toHaveLength(1);
  });
});

it.each([
  ["11", 11],
  ["1m30s", 90],
  ["3", 10],
])("patterns with the step %s are asked for every %i seconds", (step, want) => {
  const frontend = new Frontend({ clock: { nowMs: () => Number(start) * 1000 } });
  const params = new URLSearchParams({ ...selector, step });
  const request = { ...{ method: "GET", path: "", headers: {}, variables: {} }, params };
  const { patterns } = queryEndpoints(frontend, { parquetAnswers: false });
  const asker = {} as Parameters<typeof patterns.plan>[1];
  const asked = patterns.plan(request as Parameters<typeof patterns.plan>[0], asker);
  expect(asked.stepSeconds).toBe(want);
});
