import { describe, expect, it } from "@jest/globals";
import { streamKey } from "@skald/logql";
import { labelsFromObject } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { scanLog } from "./scans/log.js";
import { openHead } from "./source/source.js";
import { contextOf, logPlan, rowsOf } from "./testing/scans.js";
import { makeHead, row, testDayNs } from "./testing/sources.js";

const anyRow = fc.record({
  app: fc.constantFrom("a", "b", "c"),
  time: fc.integer({ min: 0, max: 30 }),
  isExcluded: fc.boolean(),
});
const anySource = fc.record({
  rows: fc.array(anyRow, { minLength: 1, maxLength: 30, size: "max" }),
  rowsPerBlock: fc.integer({ min: 1, max: 7 }),
});

const keyOf = (app: string) => streamKey(labelsFromObject({ app }));

describe("scanLog", () => {
  it("gives the rows of a sorted list, for any limit, bound and mask", () => {
    const params = fc.record({
      from: fc.integer({ min: 0, max: 20 }),
      to: fc.integer({ min: 0, max: 40 }),
      limit: fc.integer({ min: 1, max: 40 }),
      direction: fc.constantFrom("forward" as const, "backward" as const),
      bound: fc.option(fc.integer({ min: 0, max: 30 })),
      query: fc.constantFrom("{app=~`a|b`}", "{app=~`a|b`} |= `1`", "{app=~`.+`} | app!=`c`"),
    });
    fc.assert(
      fc.property(
        fc.array(anySource, { maxLength: 4 }),
        params,
        (sources, { bound, query, ...rest }) => {
          const plan = logPlan(query, rest);
          const scanned = sources.map(({ rows, rowsPerBlock }, sequence) => {
            const lines = rows.map(({ app, time }, i) => row(app, time, `${sequence}.${i}`));
            const byBlock = new Map<number, number[]>();
            rows.forEach(({ isExcluded }, i) => {
              const block = Math.floor(i / rowsPerBlock);
              if (isExcluded) byBlock.set(block, [...(byBlock.get(block) ?? []), i % rowsPerBlock]);
            });
            const mask = {
              blocks: Uint32Array.from(byBlock.keys()),
              rows: [...byBlock.values()].map((list) => Uint32Array.from(list)),
            };
            return {
              ref: makeHead(lines, { id: `${sequence}`, rowsPerBlock }),
              sequence,
              mask,
            };
          });
          const boundNs = bound === null ? {} : { boundNs: testDayNs + BigInt(bound) };
          const task = { plan, sources: scanned, ...boundNs };
          const { partial } = scanLog(task, (ref) => openHead(ref as never), contextOf());
          const sign = rest.direction === "backward" ? -1 : 1;
          const want = sources
            .flatMap(({ rows }, sequence) =>
              rows.map((one, i) => ({
                ...one,
                line: `${sequence}.${i}`,
                order: sequence * 100 + i,
              })),
            )
            .filter(
              ({ app, isExcluded, line, time }) =>
                app !== "c" &&
                !isExcluded &&
                (!query.includes("|= ") || line.includes("1")) &&
                time >= rest.from &&
                time < rest.to,
            )
            .filter(({ time }) => bound === null || (sign > 0 ? time <= bound : time >= bound))
            .sort(
              (a, b) =>
                sign * (a.time - b.time || keyOf(a.app) - keyOf(b.app) || a.order - b.order),
            )
            .slice(0, rest.limit);
          expect(rowsOf(plan, [partial]).map(([time, , line]) => `${time} ${line}`)).toEqual(
            want.map(({ time, line }) => `${time} ${line}`),
          );
        },
      ),
      { numRuns: testRuns(120) },
    );
  });
});
