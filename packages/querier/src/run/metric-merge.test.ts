import { describe, expect, it } from "@jest/globals";
import {
  Budget,
  type LeafPlan,
  type MetricPartial,
  type MetricPlan,
  mergeMetricPartials,
} from "@skald/logql";
import { testDayNs } from "@skald/scan/testing";
import fc from "fast-check";
import { planOf } from "../testing/requests.js";
import { MetricMerge } from "./metric-query.js";

function leafOf(query: string): LeafPlan {
  const plan = planOf(query, { from: 1e9, to: 1e9 }) as MetricPlan;
  return plan.leaves[0] as LeafPlan;
}

/** A partial of mode first: a series per app with one value at a time. */
function partialOf(
  rows: readonly { readonly app: string; readonly time: number; readonly value: number }[],
): MetricPartial {
  const first = new Map<string, { time: number; value: number }>();
  for (const { app, time, value } of rows) {
    const known = first.get(app);
    if (known === undefined || time < known.time) first.set(app, { time, value });
  }
  const series = [...first];
  return {
    mode: "first",
    labels: series.map(([app]) => ({ names: ["app"], values: [app] })),
    start: Uint32Array.from({ length: series.length + 1 }, (_, i) => i),
    bucket: new Uint32Array(series.length),
    count: new Float64Array(series.length).fill(1),
    value: Float64Array.from(series, ([, { value }]) => value),
    extra: Float64Array.from(series, ([, { time }]) => time),
    stream: new Float64Array(series.length),
  };
}

describe("MetricMerge", () => {
  const leaf = leafOf("first_over_time({app=~`.+`} | unwrap v [1s])");

  it("gives the same as merging everything at the end, in whatever order partials come", () => {
    expect(leaf.toNs).toBe(testDayNs + 1_000_000_001n);
    const anyRow = fc.record({
      app: fc.constantFrom("a", "b", "c"),
      time: fc.integer({ min: -3, max: 0 }),
      value: fc.nat(),
    });
    const lists = fc.array(fc.array(anyRow, { maxLength: 5 }), { maxLength: 12 });
    fc.assert(
      fc.property(
        lists,
        fc.array(fc.nat()),
        fc.integer({ min: 1, max: 6 }),
        (rows, shuffle, minEntries) => {
          const partials = rows.map(partialOf);
          const merge = new MetricMerge(leaf, new Budget(), { minEntries });
          const order = partials
            .map((_, place) => place)
            .sort((a, b) => (shuffle[a] ?? a) - (shuffle[b] ?? b));
          for (const place of order) merge.add(place, partials[place] as MetricPartial);
          expect(merge.result()).toEqual(mergeMetricPartials(leaf, partials));
        },
      ),
    );
  });

  it("holds few partials however many come", () => {
    const merge = new MetricMerge(leaf, new Budget(), { minEntries: 10 });
    for (let place = 0; place < 1000; place++) {
      merge.add(place, partialOf([{ app: "a", time: -place, value: place }]));
      expect(merge.size).toBeLessThan(15);
    }
    expect(merge.result()[0]?.values[0]?.[0]).toBe(999);
  });
});
