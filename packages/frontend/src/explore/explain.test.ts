import { describe, expect, it } from "@jest/globals";
import type { ExplainedScan, ExplainRequest, VolumeAnswer } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { Frontend } from "../frontend.js";
import type { QueryTenantLimits } from "../limits/limits.js";
import { bodyOf, error, limits, serverOf, stats } from "../testing/api.js";

const start = 1_795_000_000n;
const scan: ExplainedScan = { bytes: 700, blocks: 5, blocksToRead: 2, sources: 3, isExact: true };
const held: VolumeAnswer = {
  ...{ groups: [], group: new Uint32Array(0), bucket: new Uint32Array(0) },
  ...{ rows: Float64Array.of(90), bytes: Float64Array.of(4000.4), blocks: 6, streamCount: 4 },
  ...{ blockBytes: 5000, stats, warnings: [] },
};

function explainer(scans: Partial<ExplainedScan> = {}, own: Partial<QueryTenantLimits> = {}) {
  const asked: ExplainRequest[] = [];
  const querier = querierOf({
    explain: async (request) => {
      asked.push(request);
      const { plan } = request;
      return (plan.kind === "log" ? [plan] : plan.leaves).map(() => ({ ...scan, ...scans }));
    },
    volumes: async () => held,
  });
  const frontend = new Frontend({ clock: { nowMs: () => Number(start + 3600n) * 1000 } });
  const serve = serverOf(frontend, { querier, limits: { ...limits, ...own } });
  const explain = async (query: string) =>
    bodyOf(
      await serve("explain", {
        ...{ method: "GET", path: "", body: new Uint8Array(0), variables: {} },
        headers: { "x-scope-orgid": "t" },
        params: new URLSearchParams({ query, start: String(start), end: String(start + 100n) }),
        signal: new AbortController().signal,
      }),
    );
  return { explain, asked };
}

describe("explain", () => {
  it("says what a log query holds, what of it is read, and what filters look for", async () => {
    const { explain, asked } = explainer();
    const query = '{app="a", pod=~"x.*"} |= "time out" | json | status="500"';
    expect(await explain(query)).toEqual({
      ...{ query, kind: "log", cached: false, exact: true, refusedBy: null },
      parts: [
        {
          ...{ selector: '{app="a", pod=~"x.*"}', streams: 4, entries: 90, bytes: 4000 },
          ...{ segments: 3, blocks: 6, blocksToRead: 2, bytesToRead: 700, answeredBy: "scan" },
          needles: expect.arrayContaining(["time out"]),
        },
      ],
    });
    expect(asked).toMatchObject([{ tenants: ["t"], maxMs: 50 }]);
  });

  it("has a part for each range aggregation", async () => {
    const { explain } = explainer({ bytes: 0, blocksToRead: 0 });
    const { kind, parts } = await explain(
      'sum(rate({app="a"}[1m])) / sum(rate({app="b"} |= "timeout" [1m]))',
    );
    expect(kind).toBe("metric");
    expect(parts).toMatchObject([
      { selector: '{app="a"}', answeredBy: "headers", needles: [] },
      { selector: '{app="b"}', answeredBy: "headers", needles: ["timeout"] },
    ]);
  });

  it("takes all blocks to be read where headers are left", async () => {
    const left = { bytes: Number.POSITIVE_INFINITY, isExact: false };
    const { exact, parts } = await explainer(left).explain('{app="a"}');
    expect([exact, parts]).toMatchObject([false, [{ bytesToRead: 5000, answeredBy: "scan" }]]);
  });

  it.each([
    [{ max_query_bytes_read: 600 }, '{app="a"} |= "x"', /read too many bytes \(query: 700 B, /],
    [{ max_query_length: 10_000 }, '{app="a"}', /the query time range exceeds the limit/],
  ])("names the limit %j that refuses a query", async (own, query, text) => {
    const { refusedBy } = await explainer({}, own).explain(query);
    expect(refusedBy).toMatch(text);
  });

  it.each([
    [{ max_query_bytes_read: 700 }, '{app="a"} |= "x"'],
    [{ max_query_bytes_read: 1 }, '{app="a"}'],
  ])("does not say that %j refuses %s", async (own, query) => {
    expect(await explainer({}, own).explain(query)).toMatchObject({ refusedBy: null });
  });

  it("does not say that a limit refuses what may be less than it seems", async () => {
    const { explain } = explainer({ isExact: false }, { max_query_bytes_read: 600 });
    expect(await explain('{app="a"} |= "x"')).toMatchObject({ refusedBy: null });
  });

  it("refuses what is no query", async () => {
    await expect(explainer().explain('{app="a"} |')).rejects.toEqual(error(400, "parse error"));
  });
});
