import { expect, it } from "@jest/globals";
import type { QueryFunctions } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import type { MatrixResult } from "@skald/logql";
import { invalidArgument } from "@skald/model";
import { Frontend } from "../frontend.js";
import { contextOf, limits, stats } from "../testing/api.js";

const second = 1_000_000_000n;
const hour = 3600n * second;
const t0 = 1_700_006_400n * second;

/** A frontend whose queries read some bytes for each hour; `ask` gives how many calls a query of twelve hours takes. */
function setUp(bytesPerHour: number, maxHours = 100n) {
  let calls = 0;
  const query: QueryFunctions["query"] = async ({ plan }) => {
    calls++;
    const { points } = plan as Extract<typeof plan, { points: unknown }>;
    const hours = (points.stepNs * BigInt(points.count)) / hour;
    if (hours > maxHours) throw invalidArgument("the query holds too much");
    const store = { ...stats.store, decompressedBytes: bytesPerHour * Number(hours) };
    const result: MatrixResult = { kind: "matrix", points, series: [], warnings: [] };
    return { result, stats: { ...stats, store } };
  };
  const frontend = new Frontend({ clock: { nowMs: () => Number(t0 / 1_000_000n) } });
  const ask = async (tenant = "t") => {
    const splits = { querier: querierOf({ query }), limits, splitsByTime: true };
    const context = { ...contextOf(splits), tenants: [tenant] };
    const range = { startNs: t0 - 12n * hour, endNs: t0 - 1n, stepNs: 60n * second };
    const text = "sum(count_over_time({app=`a`}[1m]))";
    const params = { ...range, intervalNs: 0n, query: text, limit: 100 };
    calls = 0;
    const planned = frontend.planRange({ ...params, direction: "forward" }, context);
    await frontend.run(planned, context);
    return calls;
  };
  return ask;
}

const MiB = 1024 * 1024;

it.each([
  ["little", 1 * MiB, 1],
  ["some", 100 * MiB, 6],
  ["much", 300 * MiB, 12],
])("asks again for a query that read %s, in parts of that length", async (_, bytes, parts) => {
  const ask = setUp(bytes);
  expect([await ask(), await ask(), await ask()]).toEqual([12, parts, parts]);
  expect(await ask("other")).toBe(12);
});

it("asks in short parts where a long one holds too much, and from then on", async () => {
  const ask = setUp(MiB, 2n);
  expect([await ask(), await ask(), await ask(), await ask()]).toEqual([12, 13, 12, 12]);
});
