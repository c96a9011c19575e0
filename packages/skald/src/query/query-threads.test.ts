import { beforeEach, describe, expect, it } from "@jest/globals";
import { QueryTooHeavy } from "@skald/querier";
import { type JobOptions, MemoryBudget, MemoryShare } from "@skald/runtime";
import { defaultLimits } from "@skald/runtime/config";
import type { HttpRequest } from "@skald/transport";
import type { QueryJob, QueryReply } from "./query-job.js";
import { QueryThreads } from "./query-threads.js";

const request = (headers: Record<string, string> = {}): HttpRequest => ({
  method: "GET",
  path: "/loki/api/v1/query",
  variables: {},
  headers: { "x-scope-orgid": "a", cookie: "secret", ...headers },
  params: new URLSearchParams({ query: "vector(1)", limit: "3" }),
  body: new Uint8Array(0),
  signal: new AbortController().signal,
});

/** Query threads that say what they were asked, and answer what they are told. */
let costHere = 0;
beforeEach(() => {
  costHere = 0;
});

function threadsOf(...replies: (QueryReply | ((options: JobOptions) => Promise<QueryReply>))[]) {
  const asked: { job: QueryJob; options: JobOptions }[] = [];
  const memory = new MemoryBudget(1e9);
  let resumed = 0;
  const threads = new QueryThreads({
    memory,
    pool: {
      resume: () => {
        resumed++;
      },
      run: async <T>(_name: string, job: unknown, options: JobOptions) => {
        asked.push({ job: job as QueryJob, options });
        const reply = replies[asked.length - 1];
        return (typeof reply === "function" ? await reply(options) : reply) as T;
      },
    },
    host: {},
    querier: { run: () => Promise.reject(new QueryTooHeavy(costHere)) },
    hidesRows: (tenant) => tenant === "b",
    limitsOf: (tenant) => ({ ...defaultLimits, max_query_series: tenant === "a" ? 7 : 9 }),
    routes: {
      ...{ authEnabled: true, noAuthTenant: "fake" },
      ...{ multiTenantQueries: true, parquetAnswers: true },
    },
    threads: 2,
  });
  return { threads, asked, memory, resumed: () => resumed };
}

const { signal } = new AbortController();
const answer: QueryReply = { kind: "answer", status: 200, headers: {}, body: "x" };

describe("QueryThreads", () => {
  it("sends a request as plain data, with the limits of its tenants and no more than is looked at", async () => {
    const { threads, asked } = threadsOf(answer);
    const headers = { "x-scope-orgid": "b|a", "x-loki-actor-path": "x|y" };
    expect(await threads.serve("query", request(headers))).toMatchObject({
      status: 200,
      body: "x",
    });
    expect(asked).toHaveLength(1);
    const { job, options } = asked[0]!;
    expect(structuredClone(job)).toEqual(job);
    expect(job).toMatchObject({
      endpoint: "query",
      params: "query=vector%281%29&limit=3",
      headers,
    });
    expect(job.headers).not.toHaveProperty("cookie");
    expect(job.sentNs).toBeLessThanOrEqual(process.hrtime.bigint());
    expect(job.limits).toMatchObject({ max_query_series: 7 });
    expect(options).toMatchObject({
      lane: "urgent",
      share: { tenant: "a|b", actors: ["x", "y"], cost: 0 },
    });
  });

  it("gives a query that is too much for the small ones a thread of its own", async () => {
    const { threads, asked } = threadsOf({ kind: "too_heavy", cost: 1e9 }, answer);
    expect(await threads.serve("query", request())).toMatchObject({ status: 200 });
    expect(asked.map(({ options }) => options.lane)).toEqual(["urgent", "query"]);
    expect(asked[0]?.job.maxCost).toBeGreaterThan(0);
    expect(asked[1]?.job.maxCost).toBeUndefined();
    expect(asked[1]?.options.share?.cost).toBe(1e9);
  });

  it("sends a query that reads much straight to a thread of its own", async () => {
    costHere = 1e9;
    const { threads, asked } = threadsOf(answer);
    expect(await threads.serve("query", request())).toMatchObject({ status: 200 });
    expect(asked.map(({ options }) => options.lane)).toEqual(["query"]);
  });

  it("passes on an answer that comes in pieces, as it comes", async () => {
    const { threads } = threadsOf(async ({ host = {} }) => {
      const call = (name: string, value: unknown) => host[name]?.(value as never, { signal });
      await call("head", { status: 200, headers: { a: "b" } });
      await call("write", Uint8Array.of(1));
      await call("write", Uint8Array.of(2));
      return { kind: "written" };
    });
    const { status, headers, body } = await threads.serve("query", request());
    expect({ status, headers }).toEqual({ status: 200, headers: { a: "b" } });
    const bytes: number[] = [];
    for await (const piece of body as AsyncIterable<Uint8Array>) bytes.push(...piece);
    expect(bytes).toEqual([1, 2]);
  });

  it("asks for a tenant, but not to format a query", async () => {
    const { threads } = threadsOf(answer);
    const nobody = { "x-scope-orgid": "" };
    await expect(threads.serve("labels", request(nobody))).rejects.toThrow("no org id");
    expect(await threads.serve("format_query", request(nobody))).toMatchObject({ status: 200 });
  });

  it("takes back what a query held of the memory of all, however it ends, and lets others begin", async () => {
    const held: number[] = [];
    const reply = async (): Promise<QueryReply> => {
      new MemoryShare((asked[asked.length - 1] as { job: QueryJob }).job.memory).take(1e6);
      held.push(memory.bytes);
      if (held.length === 2) throw new Error("the thread died");
      return answer;
    };
    const { threads, asked, memory, resumed } = threadsOf(reply, reply);
    await threads.serve("query", request());
    await expect(threads.serve("query", request())).rejects.toThrow("the thread died");
    expect([held, memory.bytes, resumed()]).toEqual([[16 * 65536, 16 * 65536], 0, 2]);
  });
});
