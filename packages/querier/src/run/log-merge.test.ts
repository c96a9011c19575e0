import { describe, expect, it } from "@jest/globals";
import {
  Budget,
  groupLogRows,
  type LogPartial,
  type LogPlan,
  type LogResult,
  lineAt,
  lineMemory,
  mergeLogPartials,
} from "@skald/logql";
import { formatLabels } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { planOf } from "../testing/requests.js";
import { LogMerge } from "./log-merge.js";

interface Row {
  readonly time: number;
  readonly sequence: number;
  readonly row: number;
  readonly app: string;
  readonly line: string;
}

const noLabels = { names: [], values: [] };

function planFor(limit: number, direction: LogPlan["direction"], intervalNs = 0n): LogPlan {
  const plan = planOf("{app=~`.+`}", { limit, direction, intervalNs }) as LogPlan;
  return { ...plan, fromNs: 0n, toNs: 1000n };
}

/** Streams in no order of their names. */
const keyOf = (app: string) => (app === "a" ? 2 : 1);

/** What a scan of the rows would give. */
function partialOf({ limit, direction, intervalNs }: LogPlan, rows: readonly Row[]): LogPartial {
  const sign = direction === "backward" ? -1 : 1;
  const sorted = [...rows].sort(
    (a, b) =>
      sign *
      (a.time - b.time || keyOf(a.app) - keyOf(b.app) || a.sequence - b.sequence || a.row - b.row),
  );
  const best = intervalNs > 0n ? sorted : sorted.slice(0, limit);
  const apps = [...new Set(rows.map(({ app }) => app))];
  const offsets = [0];
  for (const { line } of best) offsets.push((offsets.at(-1) as number) + line.length);
  return {
    rowCount: best.length,
    places: {
      day: new Float64Array(best.length),
      time: Float64Array.from(best, ({ time }) => time),
      stream: Float64Array.from(best, ({ app }) => keyOf(app)),
      sequence: Float64Array.from(best, ({ sequence }) => sequence),
      row: Float64Array.from(best, ({ row }) => row),
    },
    labelSet: Uint32Array.from(best, ({ app }) => apps.indexOf(app)),
    lines: {
      bytes: Buffer.from(best.map(({ line }) => line).join("")),
      offsets: Uint32Array.from(offsets),
    },
    labels: apps.map((app) => {
      const labels = { names: ["app"], values: [app] };
      return {
        labels,
        categories: { stream: labels, structuredMetadata: noLabels, parsed: noLabels },
      };
    }),
    truncated: best.length < rows.length,
  };
}

function told(result: LogResult): string[] {
  const texts = new Array<string>(result.rowCount);
  for (const { labels, rows } of groupLogRows(result, "all"))
    for (const at of rows)
      texts[at] =
        `${result.timestamps[at]} ${formatLabels(labels)} ${Buffer.from(lineAt(result.lines, at))}`;
  return texts;
}

const row = (time: number, sequence = 0, line = `line ${time}`): Row => ({
  time,
  sequence,
  row: time,
  app: "a",
  line,
});

describe("LogMerge", () => {
  it("has a bound once there are enough rows", () => {
    const plan = planFor(3, "backward");
    const merge = new LogMerge(plan, new Budget());
    expect(merge.boundNs()).toBeUndefined();
    merge.add(partialOf(plan, [row(10), row(20)]));
    expect(merge.boundNs()).toBeUndefined();
    merge.add(partialOf(plan, [row(5, 1), row(4, 1)]));
    expect(merge.boundNs()).toBe(5n);
    merge.add(partialOf(plan, [row(30, 2)]));
    expect(merge.boundNs()).toBe(10n);
    merge.add(partialOf(plan, [row(1, 3), row(2, 3)]));
    expect(merge.boundNs()).toBe(10n);
    expect(told(merge.result())).toEqual([
      '30 {app="a"} line 30',
      '20 {app="a"} line 20',
      '10 {app="a"} line 10',
    ]);
  });

  it("thins rows before it cuts them", () => {
    const plan = planFor(2, "forward", 5n);
    const merge = new LogMerge(plan, new Budget());
    merge.add(partialOf(plan, [row(1), row(2), row(9)]));
    expect(merge.boundNs()).toBe(9n);
    merge.add(partialOf(plan, [row(0, 1), row(7, 1), row(8, 1)]));
    expect(merge.boundNs()).toBe(7n);
    expect(told(merge.result())).toEqual(['0 {app="a"} line 0', '7 {app="a"} line 7']);
  });

  it("takes no row behind one that a scan has not looked at", () => {
    const plan = planFor(4, "forward", 5n);
    const merge = new LogMerge(plan, new Budget());
    merge.add(partialOf(plan, [row(1), row(9), row(20)]));
    expect(merge.boundNs()).toBeUndefined();
    merge.add({ ...partialOf(plan, [row(3, 1), row(8, 1)]), truncated: true });
    expect(merge.boundNs()).toBe(8n);
    expect(told(merge.result())).toEqual(['1 {app="a"} line 1', '8 {app="a"} line 8']);
  });

  it("frees the rows that others push out", () => {
    const plan = planFor(4, "forward");
    const budget = new Budget();
    const merge = new LogMerge(plan, budget);
    const line = "x".repeat(1000);
    for (let sequence = 50; sequence > 0; sequence--) {
      const rows = [0, 1, 2, 3].map((i) => row(sequence * 10 + i, sequence, line));
      merge.add(partialOf(plan, rows));
      expect(budget.bytes).toBeLessThan(2 * 4 * 1100);
    }
    expect(merge.boundNs()).toBe(13n);
  });

  it("refuses lines that take too much memory together", () => {
    const plan = planFor(100, "forward");
    const merge = new LogMerge(plan, new Budget({ maxBytes: 4500 }));
    const line = "x".repeat(1000);
    for (const time of [1, 2, 3]) merge.add(partialOf(plan, [row(time, time, line)]));
    expect(() => merge.add(partialOf(plan, [row(4, 4, line)]))).toThrow(
      "the query needs more than 4500 bytes of memory (limit: max_query_memory_bytes)",
    );
  });

  it("holds lines once: those of a result lie where the scans have put them", () => {
    const plan = planFor(100, "forward");
    const line = "x".repeat(1000);
    const partials = [0, 1, 2].map((i) =>
      partialOf(plan, [row(i, i, line), row(i + 3, i, line), row(i + 6, i, line)]),
    );
    const budget = new Budget({ maxBytes: 3 * 3 * 1200 });
    const merge = new LogMerge(plan, budget);
    for (const partial of partials) merge.add(partial);
    const held = budget.bytes;
    const { lines, rowCount } = merge.result();
    expect(rowCount).toBe(9);
    expect(lines.columns).toEqual(partials.map((partial) => partial.lines));
    for (const [i, { bytes }] of lines.columns.entries())
      expect(bytes).toBe(partials[i]?.lines.bytes);
    expect(budget.mostBytes).toBe(held);
  });

  it("frees the rows that an interval leaves out", () => {
    const plan = planFor(100, "forward", 50n);
    const budget = new Budget();
    const merge = new LogMerge(plan, budget);
    const rows = Array.from({ length: 100 }, (_, i) => row(i, 0, "x".repeat(1000)));
    merge.add(partialOf(plan, rows));
    const { lines, rowCount } = merge.result();
    expect(rowCount).toBe(2);
    expect(lineMemory(lines)).toBeLessThan(2 * 1100);
    expect(budget.bytes).toBeLessThan(2 * 1600);
  });

  it("refuses labels that take too much memory together, and counts those of its rows only", () => {
    const plan = planFor(2, "forward");
    const wide = (time: number): LogPartial => {
      const partial = partialOf(plan, [{ time, sequence: 0, row: time, app: "a", line: "x" }]);
      const names = Array.from({ length: 10_000 }, (_, i) => `k${i}`);
      const labels = { names, values: names };
      return {
        ...partial,
        labels: [
          {
            labels,
            categories: { stream: noLabels, structuredMetadata: noLabels, parsed: labels },
          },
        ],
      };
    };
    const merge = new LogMerge(plan, new Budget({ maxBytes: 3_500_000 }));
    // Each pushes the worst of those before out.
    for (let time = 20; time > 0; time--) merge.add(wide(time));
    expect(merge.result().rowCount).toBe(2);
    const all = new LogMerge(planFor(100, "forward"), new Budget({ maxBytes: 3_500_000 }));
    const addAll = () => {
      for (let time = 20; time > 0; time--) all.add(wide(time));
    };
    expect(addAll).toThrow(/max_query_memory_bytes/);
  });

  it("agrees with sorting all rows, in whatever order partials come", () => {
    const anyRow = fc.record({
      time: fc.integer({ min: 0, max: 8 }),
      app: fc.constantFrom("a", "b"),
      line: fc.constantFrom("", "x", "yy"),
    });
    const partials = fc.array(fc.array(anyRow, { maxLength: 8 }), { maxLength: 8 });
    const params = fc.record({
      limit: fc.integer({ min: 1, max: 20 }),
      direction: fc.constantFrom("forward" as const, "backward" as const),
      intervalNs: fc.constantFrom(0n, 0n, 2n),
    });
    fc.assert(
      fc.property(
        partials,
        params,
        fc.array(fc.nat()),
        (lists, { limit, direction, intervalNs }, shuffle) => {
          const plan = planFor(limit, direction, intervalNs);
          // Interleaved sequences, as blocks of one source in several tasks have them.
          const all = lists.map((rows, i) =>
            partialOf(
              plan,
              rows.map((one, at) => ({ ...one, sequence: i + 100 * (at % 2), row: at })),
            ),
          );
          const order = all
            .map((partial, i) => ({ partial, key: shuffle[i] ?? i }))
            .sort((a, b) => a.key - b.key);
          const merge = new LogMerge(plan, new Budget());
          for (const { partial } of order) merge.add(partial);
          expect(told(merge.result())).toEqual(told(mergeLogPartials(plan, all)));
        },
      ),
      { numRuns: testRuns(150) },
    );
  });
});
