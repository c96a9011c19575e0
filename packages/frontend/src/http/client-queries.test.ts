import { describe, expect, it } from "@jest/globals";
import { querierOf } from "@skald/contracts/testing/fakes";
import { defaultLimits } from "@skald/runtime/config";
import type { HttpRequest } from "@skald/transport";
import { Frontend } from "../frontend.js";
import { stats, vector } from "../testing/api.js";
import { ClientQueries, type JobLanes } from "./client-queries.js";
import { FrontendThread, type QueryJob, type QueryReply } from "./query-job.js";

const { signal } = new AbortController();
const request = (headers: Record<string, string> = {}): HttpRequest => ({
  method: "GET",
  path: "/loki/api/v1/query",
  variables: {},
  headers: { "x-scope-orgid": "a", cookie: "secret", ...headers },
  params: new URLSearchParams({ query: "vector(1)", limit: "3" }),
  body: new Uint8Array(0),
  signal,
});
const answer: QueryReply = { kind: "answer", status: 200, headers: {}, body: "x" };

type LaneOptions = Parameters<JobLanes["run"]>[2];

/** Queries whose threads say what they were asked, and answer what they are told. */
function queriesOf(reply: (options: LaneOptions) => QueryReply | Promise<QueryReply>) {
  const asked: { job: QueryJob; options: LaneOptions }[] = [];
  const queries = new ClientQueries({
    lanes: {
      run: async <Reply>(_name: string, job: object, options: LaneOptions) => {
        asked.push({ job: job as QueryJob, options });
        return (await reply(options)) as Reply;
      },
    },
    limitsOf: (tenant) => ({ ...defaultLimits, max_query_series: tenant === "a" ? 7 : 9 }),
    ...{ authEnabled: true, noAuthTenant: "fake", multiTenantQueries: true },
    ...{ isElsewhere: false, parquetAnswers: true, alignToStep: false },
  });
  return { queries, asked };
}

describe("ClientQueries", () => {
  it("sends a request as plain data, with the limits of its tenants and no more than is looked at", async () => {
    const { queries, asked } = queriesOf(() => answer);
    const accept = { accept: "application/json" };
    const headers = { "x-scope-orgid": "b|a", "x-loki-actor-path": "x|y", "x-query-tags": "a=b" };
    const served = await queries.serve("query", request({ ...headers, ...accept }));
    expect(served).toMatchObject({ status: 200, body: "x" });
    expect(asked).toHaveLength(1);
    const [{ job, options }] = asked as [(typeof asked)[0]];
    expect(structuredClone(job)).toEqual(job);
    expect(job.request).toMatchObject({
      endpoint: "query",
      params: "query=vector%281%29&limit=3",
      ...{ tenants: ["a", "b"], actors: ["x", "y"], queryTags: "a=b" },
      limits: { max_query_series: 7 },
    });
    expect(job.request.headers).toEqual(accept);
    expect(job.sentNs).toBeLessThanOrEqual(process.hrtime.bigint());
    expect(options).toMatchObject({ tenants: ["a", "b"], actors: ["x", "y"] });
    // A job ends with its client, or is not begun.
    expect(options.signal).toBe(signal);
  });

  it("passes on an answer that comes in pieces, as it comes", async () => {
    const { queries } = queriesOf(async ({ host }) => {
      const call = (name: string, value: unknown) => host[name]?.(value as never, { signal });
      await call("head", { status: 200, headers: { a: "b" } });
      await call("write", Uint8Array.of(1));
      await call("write", Uint8Array.of(2));
      return { kind: "written" };
    });
    const { status, headers, body } = await queries.serve("query", request());
    expect({ status, headers }).toEqual({ status: 200, headers: { a: "b" } });
    const bytes: number[] = [];
    for await (const piece of body as AsyncIterable<Uint8Array>) bytes.push(...piece);
    expect(bytes).toEqual([1, 2]);
  });

  it("asks for a tenant, but not to format a query", async () => {
    const { queries } = queriesOf(() => answer);
    const nobody = { "x-scope-orgid": "" };
    await expect(queries.serve("labels", request(nobody))).rejects.toThrow("no org id");
    expect(await queries.serve("format_query", request(nobody))).toMatchObject({ status: 200 });
  });

  it("has no text read here: what a thread planned, and gave back, is answered here, and known from then on", async () => {
    const planned: unknown[] = [];
    const asked: unknown[] = [];
    const querier = querierOf({
      query: async ({ plan }) => {
        asked.push(plan.kind);
        return { result: vector, stats };
      },
    });
    const queries = new ClientQueries({
      lanes: {
        run: async (_name: string, job: object, { here, planned: known }) => {
          const { request: given } = job as QueryJob;
          const frontend = new Frontend({ clock: { nowMs: () => 1000 } });
          const range = { timeNs: 1n, limit: 1, direction: "forward" } as const;
          const text = new URLSearchParams(given.params).get("query") as string;
          planned.push(known === undefined ? text : "known");
          const plan = known ?? frontend.planInstant({ ...range, query: text }, given);
          return here!(plan, querier, () => new Error("too much"));
        },
      },
      limitsOf: () => ({ ...defaultLimits, query_timeout: 1000 }),
      ...{ authEnabled: true, noAuthTenant: "fake", multiTenantQueries: true },
      ...{ isElsewhere: false, parquetAnswers: true, alignToStep: false },
    });
    for (let i = 0; i < 2; i++) {
      expect(await queries.serve("query", request())).toMatchObject({ status: 200 });
    }
    expect([planned, asked]).toEqual([
      ["vector(1)", "known"],
      ["metric", "metric"],
    ]);
  });

  it("has a plan given back that is short, and a long one answered where it was made", async () => {
    const reply = async (text: string) => {
      const { queries, asked } = queriesOf(() => answer);
      const params = new URLSearchParams({ query: text });
      await queries.serve("query", { ...request(), params });
      const querier = querierOf({ query: async () => ({ result: vector, stats }) });
      const call = async () => undefined as never;
      const context = { signal, call, check: () => undefined, isCancelled: () => false };
      const job = { ...asked[0]!.job, givesBack: true };
      return (await new FrontendThread().answer(job, context, () => querier)).kind;
    };
    const rate = (terms: number) => `rate({a="b"} ${'|= "x" '.repeat(terms)} [1m])`;
    expect([await reply(rate(1)), await reply(rate(1400))]).toEqual(["planned", "answer"]);
  });

  it("gives the value of an endpoint that no client has", async () => {
    const value = { kind: "scalar", value: 1 };
    const { queries } = queriesOf(() => ({ kind: "value", value }));
    expect(await queries.read("rule", request())).toEqual(value);
    const { queries: others } = queriesOf(() => answer);
    await expect(others.read("rule", request())).rejects.toThrow("rule has no value");
  });
});
