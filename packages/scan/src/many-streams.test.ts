import { afterAll, describe, expect, it } from "@jest/globals";
import {
  defaultQueryLimits,
  type LeafPlan,
  type LogPlan,
  parseQuery,
  planQuery,
} from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { findShared } from "./dedup/shared-rows.js";
import { scanLog } from "./scans/log.js";
import { scanMetric } from "./scans/metric.js";
import { scanLabels, scanStreams } from "./scans/streams.js";
import { SourceCache } from "./source/cache.js";
import { sourcesOf } from "./source/source.js";
import { makeDirectory, makeSegment, row, type SourceRow, testDayNs } from "./testing/sources.js";

const directory = makeDirectory();
afterAll(directory.remove);
const streamCount = 3000;

/** A line of each stream, one each microsecond from a time on; ten streams have each namespace. */
function rowsFrom(time: number): SourceRow[] {
  return Array.from({ length: streamCount }, (_, i) => ({
    ...row("x", time + i * 1000, `{"level":"info","n":${i}}`),
    labels: { app: "x", namespace: `n${i % (streamCount / 10)}`, pod: `p${i}` },
  }));
}

const lastTime = streamCount * 1000;
const refs: readonly SegmentRef[] = [0, lastTime - 2000].map((time, i) =>
  makeSegment(directory.path, rowsFrom(time), { id: `s${i}` }),
);
const range = { fromNs: testDayNs, toNs: testDayNs + BigInt(3 * lastTime) };
const check = () => {};

/** What work gives, and label sets and texts of streams that were put together for it. */
function count<T>(work: (open: Parameters<Parameters<SourceCache["use"]>[0]>[0]) => T) {
  const cache = new SourceCache({ maxOpenSegments: 9, maxIndexBytes: 1e9 });
  const result = cache.use(work);
  const made = cache.use((open) => refs.reduce((sum, ref) => sum + open(ref).streams.made, 0));
  cache.close();
  return { result, made };
}

/** A log query of all the time, or a metric query at its end. */
function planOf(query: string) {
  const endNs = range.toNs;
  const startNs = query.startsWith("{") ? range.fromNs : endNs;
  const params = { startNs, endNs, stepNs: 0n, intervalNs: 0n, limit: 10 } as const;
  return planQuery(parseQuery(query), { ...params, direction: "backward" }, defaultQueryLimits);
}

const sources = refs.map((ref, sequence) => ({ ref, sequence }));

describe("streams that are put together", () => {
  it.each([
    ["sum(count_over_time({app=`x`}[1m]))", 2 * streamCount],
    ["sum by (namespace) (count_over_time({app=`x`}[1m]))", 2 * streamCount],
    ["sum by (level) (count_over_time({app=`x`} | json [1m]))", 2 * streamCount],
    ["sum by (level) (count_over_time({app=`x`} | json | n > 10 [1m]))", 2 * (streamCount - 11)],
  ])("are none for %s", (query, want) => {
    const plan = planOf(query);
    if (plan.kind !== "metric") throw new Error("not a metric query");
    const { result, made } = count((open) =>
      scanMetric({ plan: plan.leaves[0] as LeafPlan, sources }, open, { check }),
    );
    expect(result.partial.count.reduce((sum, rows) => sum + rows, 0)).toBe(want);
    expect(made).toBe(0);
  });

  it("are those of its lines for a log query", () => {
    const { result, made } = count((open) =>
      scanLog({ plan: planOf("{namespace=`n7`}") as LogPlan, sources }, open, { check }),
    );
    expect(result.partial.rowCount).toBe(10);
    expect(made).toBeLessThanOrEqual(20);
  });

  it("are none for names, values and label sets", () => {
    const task = { sources: sourcesOf(refs), selectors: [], ...range };
    const { result, made } = count((open) => ({
      names: scanLabels(task, open, check),
      pods: scanLabels({ ...task, label: "pod" }, open, check).length,
      streams: scanStreams(task, open, check).starts.length - 1,
    }));
    expect(result).toEqual({
      names: ["app", "namespace", "pod"],
      pods: streamCount,
      streams: streamCount,
    });
    expect(made).toBe(0);
  });

  it("are those with rows in the time that two sources share for their duplicates", () => {
    const [older, newer] = refs as [SegmentRef, SegmentRef];
    const { made } = count((open) =>
      findShared([open(older), open(newer)], { check, wantedFrom: 1 }),
    );
    expect(made).toBeLessThan(100);
  });
});
