import { describe, expect, it } from "@jest/globals";
import {
  type Catalog,
  type HeldRows,
  type SegmentScanner,
  scheduledQuerier,
} from "@skald/contracts";
import type { LogPlan, Plan } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { type JobOptions, MemoryBudget, MemoryShare } from "@skald/runtime";
import type { LookUpRequest } from "./find/source-finder.js";
import type { Querier } from "./querier.js";
import { type Planned, QueryLanes } from "./query-lanes.js";
import { noLimits, planOf } from "./testing/requests.js";
import type { MovedOn, QuerierJob } from "./thread-querier.js";

const { signal } = new AbortController();
const asking = { tenants: ["a", "b"], actors: ["x"], signal };
const found = { cost: 1e9, lists: [], missing: [] };
const answer = { kind: "answer" };
type Reply = typeof answer | MovedOn | Planned;

const plan = planOf("{app=`a`} |= `x`", { limit: 10 }) as LogPlan;
/** What the store has: much to read. */
const stored: readonly SegmentRef[] = [
  {
    ...{ kind: "segment", id: "s", tenant: "a", minNs: plan.fromNs, maxNs: plan.toNs - 1n },
    location: { kind: "object", key: "s" },
    sizeBytes: 1e9,
  },
];

/** Lanes whose threads say what they were asked, and answer what they are told. */
function lanesOf(
  ...replies: (Reply | ((job: QuerierJob, options: JobOptions) => Promise<Reply>))[]
) {
  const asked: { name: string; job: QuerierJob; options: JobOptions }[] = [];
  const memory = new MemoryBudget(1e9);
  const released: string[] = [];
  let resumed = 0;
  const ingester = {
    select: async () => ({ sources: [], view: `v${asked.length}` }),
    release: async (view: string) => void released.push(view),
  } as Partial<HeldRows> as HeldRows;
  const lanes = new QueryLanes({
    memory,
    pool: {
      resume: () => {
        resumed++;
      },
      run: async <T>(name: string, job: unknown, options: JobOptions) => {
        asked.push({ name, job: job as QuerierJob, options });
        const reply = replies[asked.length - 1];
        return (typeof reply === "function" ? await reply(job as QuerierJob, options) : reply) as T;
      },
    },
    services: {
      ingester,
      catalog: { list: async ({ toNs }) => (toNs < plan.fromNs ? [] : stored) } as Catalog,
      // Its scans go on.
      scanner: { run: () => new Promise(() => undefined) } as SegmentScanner,
    },
    host: {},
    hidesRows: (tenant) => tenant === "b",
    deletesOf: (tenant) => (tenant === "b" ? "2 requests" : ""),
    threads: 2,
  });
  return { lanes, asked, memory, released, resumed: () => resumed };
}

/** Looks up sources as a job does. */
async function find({ host = {} }: JobOptions): Promise<void> {
  const request = { tenant: "a", matchers: [], fromNs: 0n, toNs: 1n };
  const asked: LookUpRequest = { request, fresh: false };
  await host.find?.(asked as never, { signal });
}

describe("QueryLanes", () => {
  it("begins on the thread for small queries, as plain data", async () => {
    const { lanes, asked } = lanesOf(answer);
    expect(await lanes.run("query", { text: "x" }, asking)).toEqual(answer);
    const [{ name, job, options }] = asked as [(typeof asked)[0]];
    expect(structuredClone(job)).toEqual(job);
    expect([asked.length, name]).toEqual([1, "query"]);
    expect(job).toMatchObject({
      ...{ text: "x", threads: 2, hidesRows: true },
      deletes: new Map([["b", "2 requests"]]),
    });
    expect(job.maxCost).toBeGreaterThan(0);
    const share = { tenant: "a|b", actors: ["x"], cost: 0 };
    expect(options).toMatchObject({ lane: "urgent", share });
    expect(options.signal).toBe(asking.signal);
  });

  it("gives a query that is too much for the small ones a thread of its own, with what was found", async () => {
    const more = { planned: "plan" };
    const { lanes, asked } = lanesOf({ kind: "moved_on", found, more }, answer);
    expect(await lanes.run("query", { text: "x" }, asking)).toEqual(answer);
    expect(asked.map(({ options }) => options.lane)).toEqual(["urgent", "query"]);
    expect(asked[1]?.job).toMatchObject({ text: "x", found, ...more });
    expect(asked[1]?.job).not.toHaveProperty("maxCost");
    expect(asked[1]?.options.share?.cost).toBe(1e9);
  });

  describe("a query that is given back when it is planned", () => {
    const planned = { text: "plan" };
    const given = { kind: "planned", planned };
    const request = { tenants: ["a"], selectors: [], fromNs: 0n, toNs: 1n };

    it("runs here, on sources that are found here", async () => {
      const { lanes, asked, released } = lanesOf(given);
      const here = async (plan: unknown, querier: Querier) => {
        expect(plan).toBe(planned);
        const [{ texts } = { texts: ["none"] }] = await querier.run("labels", request, { signal });
        return { kind: `${texts.length} labels` };
      };
      expect(await lanes.run("query", {}, { ...asking, here })).toEqual({ kind: "0 labels" });
      expect([asked.length, released]).toEqual([1, ["v1"]]);
    });

    it("needs no other thread where it is planned already", async () => {
      const { lanes, asked } = lanesOf();
      const here = async () => answer;
      expect(await lanes.run("query", {}, { ...asking, here, planned })).toEqual(answer);
      expect(asked).toEqual([]);
    });

    it("goes on elsewhere if it reads much while many of these run here", async () => {
      const { lanes, asked } = lanesOf(answer);
      const here = async (_: unknown, querier: Querier) => {
        await querier.run("query", { tenants: ["a"], limits: noLimits, plan }, { signal });
        return answer;
      };
      const ask = () => lanes.run("query", {}, { ...asking, here, planned });
      for (let i = 0; i < 16; i++) void ask();
      expect(await ask()).toEqual(answer);
      expect(asked.map(({ options }) => options.lane)).toEqual(["query"]);
    });

    it.each([
      [1000, ["urgent"], [answer]],
      [1e9, ["query"], [answer]],
      [1000, ["urgent", "query"], [{ kind: "moved_on", found: { ...found, cost: 1000 } }, answer]],
    ])("goes on where it belongs by its cost: %p, %p", async (cost, lanesOfIt, replies) => {
      const { lanes, asked } = lanesOf(...(replies as Reply[]));
      const here = async (_: unknown, _querier: Querier, tooMuch: (bytes: number) => Error) => {
        throw tooMuch(cost);
      };
      expect(await lanes.run("query", {}, { ...asking, here, planned })).toEqual(answer);
      expect(asked.map(({ options }) => options.lane)).toEqual(lanesOfIt);
      expect(asked[0]?.job).toMatchObject({ planned, found: { cost } });
    });

    it("fails as it fails here", async () => {
      const { lanes } = lanesOf();
      const here = () => Promise.reject(new Error("a bug"));
      await expect(lanes.run("query", {}, { ...asking, here, planned })).rejects.toThrow("a bug");
    });
  });

  describe("a call of a scheduler", () => {
    /** Asks by way of a scheduler. The threads of these lanes answer no more than that they were asked. */
    const queried = (lanes: QueryLanes) =>
      scheduledQuerier(() => ({
        run: async (call) => ({ body: await lanes.answerCall(call, { signal }), queueSeconds: 0 }),
      }));
    const thread = () => Promise.reject(new Error("a thread was asked"));
    const tenants = ["a"];
    const ask = (lanes: QueryLanes, plan: Plan) =>
      queried(lanes).run("query", { tenants, limits: noLimits, plan }, { signal });

    it("is answered here where it is light and reads little", async () => {
      const { lanes, asked, released } = lanesOf();
      const request = { tenants, selectors: [], fromNs: 0n, toNs: 1n };
      expect(await queried(lanes).run("labels", request, { signal })).toEqual([
        { tenant: "a", texts: [] },
      ]);
      expect([asked.length, released]).toEqual([0, ["v0"]]);
    });

    it("goes on elsewhere with what was found where it reads much, also for a rare text", async () => {
      const { lanes, asked } = lanesOf(thread);
      await expect(ask(lanes, plan)).rejects.toThrow("a thread was asked");
      expect(asked.map(({ options }) => options.lane)).toEqual(["query"]);
      expect(asked[0]?.job.found?.lists).toHaveLength(1);
    });

    it("begins elsewhere where its evaluation is work", async () => {
      const { lanes, asked } = lanesOf(thread);
      const counts = "count_over_time({app=`a`}[1s])";
      const joined = planOf(`${counts} / ${counts}`);
      await expect(ask(lanes, joined)).rejects.toThrow("a thread was asked");
      expect(asked.map(({ options }) => options.lane)).toEqual(["urgent"]);
      expect(asked[0]?.job).not.toHaveProperty("found");
    });
  });

  it("keeps the views of a query open until it ends, wherever it runs", async () => {
    const openAtEnd: number[] = [];
    const { lanes, released } = lanesOf(
      async (_, options) => {
        await find(options);
        return { kind: "moved_on", found };
      },
      async (_, options) => {
        await find(options);
        openAtEnd.push(released.length);
        throw new Error("the thread died");
      },
    );
    await expect(lanes.run("query", {}, asking)).rejects.toThrow("the thread died");
    expect([openAtEnd, released]).toEqual([[0], ["v1", "v2"]]);
  });

  it("takes back what a query held of the memory of all, however it ends, and lets others begin", async () => {
    const held: number[] = [];
    const reply = async (job: QuerierJob): Promise<Reply> => {
      new MemoryShare(job.memory).take(1e6);
      held.push(memory.bytes);
      if (held.length === 2) throw new Error("the thread died");
      return answer;
    };
    const { lanes, memory, resumed } = lanesOf(reply, reply);
    await lanes.run("query", {}, asking);
    await expect(lanes.run("query", {}, asking)).rejects.toThrow("the thread died");
    expect([held, memory.bytes, resumed()]).toEqual([[16 * 65536, 16 * 65536], 0, 2]);
  });
});
