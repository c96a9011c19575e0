import { execFileSync } from "node:child_process";
import { afterAll, expect, it } from "@jest/globals";
import {
  answerScheduled,
  type HeldRows,
  type QueryFunctions,
  type ScheduledCall,
  type SegmentScanner,
  scheduledQuerier,
} from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { ClientQueries } from "@skald/frontend";
import { SkaldError } from "@skald/model";
import { QueryLanes } from "@skald/querier";
import { MemoryBudget, WorkerPool } from "@skald/runtime";

import { defaultLimits } from "@skald/runtime/config";

const pool = new WorkerPool({
  url: new URL("./query-worker.js", import.meta.url),
  ...{ size: 1, urgentJobs: 8, maxQueued: 100 },
});
afterAll(() => pool.close());

const memory = new MemoryBudget(1e9);
const { signal } = new AbortController();
const range = { selectors: [], fromNs: 0n, toNs: 1n };
const long = {
  ...range,
  selectors: [[{ name: "a", op: "=", value: "x".repeat(10_000) }]],
} as const;

it("answers a call that is work to read on a query thread, from what ingesters and store have", async () => {
  const asked: string[] = [];
  const jobs: string[] = [];
  const run: WorkerPool["run"] = (name, ...rest) => {
    jobs.push(name);
    return pool.run(name, ...rest);
  };
  const ingester = {
    select: async ({ tenant }: { readonly tenant: string }) => {
      asked.push(tenant);
      if (tenant === "down") throw new SkaldError("unavailable", "too few ingesters answered");
      return { sources: [] };
    },
  } as Partial<HeldRows> as HeldRows;
  const lanes = new QueryLanes({
    ...{ pool: { run, resume: () => pool.resume() }, memory, host: {}, threads: 2 },
    hidesRows: () => false,
    services: {
      ingester,
      catalog: { list: async () => [] },
      scanner: ingester as unknown as SegmentScanner,
    },
  });
  const querier = scheduledQuerier(() => ({
    run: async (call, options) => ({
      body: await lanes.answerCall(call, options),
      queueSeconds: 0,
    }),
  }));
  const found = await querier.run("labels", { tenants: ["t"], ...long }, { signal });
  expect(found).toEqual([{ tenant: "t", texts: [] }]);
  const failed = querier.run("labels", { tenants: ["down"], ...long }, { signal });
  await expect(failed).rejects.toMatchObject({ code: "unavailable" });
  expect([asked, jobs]).toEqual([
    ["t", "down"],
    ["call", "call"],
  ]);
});

it("has queriers elsewhere answer what a request asks for", async () => {
  const calls: ScheduledCall[] = [];
  const labels: QueryFunctions["labels"] = async ({ tenants }) => [
    { tenant: tenants[0] as string, texts: ["app", "env"] },
  ];
  const lanes = new QueryLanes({
    ...{ pool, memory, threads: 2, hidesRows: () => false },
    host: {
      schedule: async (call: ScheduledCall, options: { readonly signal: AbortSignal }) => {
        calls.push(call);
        const body = await answerScheduled(querierOf({ labels }), call, options);
        return { value: { body, queueSeconds: 0 } };
      },
    },
  });
  const queries = new ClientQueries({
    ...{ lanes, isElsewhere: lanes.isElsewhere, limitsOf: () => defaultLimits },
    ...{ authEnabled: true, noAuthTenant: "fake", multiTenantQueries: true },
    ...{ parquetAnswers: true, alignToStep: false },
  });
  const response = await queries.serve("labels", {
    ...{ method: "GET", path: "/loki/api/v1/labels", variables: {}, params: new URLSearchParams() },
    ...{ headers: { "x-scope-orgid": "t", "x-loki-actor-path": "a|b" }, body: new Uint8Array(0) },
    signal,
  });
  const pieces: Uint8Array[] = [];
  if (typeof response.body === "string" || response.body instanceof Uint8Array) {
    pieces.push(Buffer.from(response.body));
  } else for await (const piece of response.body ?? []) pieces.push(piece);
  expect(JSON.parse(Buffer.concat(pieces).toString())).toEqual({
    ...{ status: "success", data: ["app", "env"] },
  });
  expect(calls.map(({ method, tenant, actors }) => ({ method, tenant, actors }))).toEqual([
    { method: "labels", tenant: "t", actors: ["a", "b"] },
  ]);
});

it("loads nothing that serves HTTP, so that a thread starts fast", () => {
  const script = `
    import { createRequire } from "node:module";
    await import("@skald/frontend");
    await import("@skald/querier");
    const { cache } = createRequire(import.meta.url);
    console.log(Object.keys(cache).filter((file) => /node_modules.(express|ws)./.test(file)).length);`;
  const found = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: new URL(".", import.meta.url),
  });
  expect(found.toString().trim()).toBe("0");
});
