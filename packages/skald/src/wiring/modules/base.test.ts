import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "@jest/globals";
import { buildInfo, type Lane, memoryBytes, type WorkerPool } from "@skald/runtime";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { load, minimal, run } from "../../config/testing/load.js";
import type { Parts } from "../module.js";
import { buildPool } from "./base.js";

const parts = {} as Parts;
const { config } = run(load(minimal, "-server.worker-threads=2"));
const metrics = new Metrics();
buildPool(parts, { config, log: silentLogger(), metrics, build: buildInfo() });
afterAll(() => parts.pool.close());

/** A counter of tenant `a`. */
async function counted(name: string): Promise<number> {
  return (await metrics.sums(name, "tenant")).get("a") ?? 0;
}

const share = (tenant: string) => ({ tenant, actors: [], cost: 0 });

describe("the threads that decode, seal and scan", () => {
  it.each<Lane>(["urgent", "decode", "query"])("serve tenants in turn in lane %s", async (lane) => {
    const ended: string[] = [];
    const job = (tenant: string) =>
      parts.pool
        .run("streams", nothing, { lane, share: share(tenant) })
        .finally(() => ended.push(tenant));
    const many = Array.from({ length: 300 }, () => job("many"));
    await job("one");
    // Those that were running when it came, and some in turn with it.
    expect(ended.length).toBeLessThan(40);
    await Promise.all(many);
  });

  it("count the time that a tenant takes of them", async () => {
    const body = Buffer.from(`{"streams":[]${" ".repeat(4 << 20)}}`);
    const input = { format: "json", encoding: "identity", body };
    const jobs = Array.from({ length: 10 }, () =>
      parts.pool.run("decode_push", { input }, { lane: "decode", share: share("a") }),
    );
    await Promise.all(jobs);
    expect(await counted("tenant_thread_cpu_seconds_total")).toBeGreaterThan(0.01);
    expect(await counted("tenant_thread_queue_seconds_total")).toBeGreaterThan(0.01);
  });

  it.each<Lane>(["urgent", "tail", "query"])(
    "run jobs of lane %s while many pushes of another tenant are inflated",
    (lane) => runBeside("decode", parts.pool, lane),
  );

  it("run queries while many heads are sealed", () => runBeside("seal", parts.pool, "query"));

  it("seal heads on the one for queries while there are none", async () => {
    const others = {} as Parts;
    buildPool(others, { config, log: silentLogger(), metrics: new Metrics(), build: buildInfo() });
    await runBeside("decode", others.pool, "seal");
    await others.pool.close();
  });
});

it("lets pushes hold 384 MiB where nobody says how much, however large the machine is", () => {
  const maxBytes = Math.min(384 << 20, memoryBytes() / 8);
  // An eighth is left to small pushes.
  const most = Math.floor((maxBytes * 7) / 8);
  const claim = parts.ledger.open("a");
  claim.receive(most);
  expect(() => claim.receive(1 << 20)).toThrow(`pushes hold ${maxBytes} bytes`);
  claim.close();
});

/** A scan that looks at nothing. */
const nothing = { sources: [], selectors: [], fromNs: 0n, toNs: 1n };

/** Runs jobs of a lane while another lane has long ones of another tenant. */
async function runBeside(busy: Lane, pool: WorkerPool, lane: Lane): Promise<void> {
  const json = '{"streams":[{"stream":{"a":"b"},"values":[["1760000000000000000","x"]]}]}';
  const bomb = gzipSync(Buffer.concat([Buffer.from(json), Buffer.alloc(30 << 20, " ")]));
  const input = { format: "json", encoding: "gzip", body: bomb };
  const one = () => pool.run("streams", nothing, { lane, share: share("one") });
  // A thread has started: how long that takes on a busy machine is not what is tested.
  await one();
  let ended = 0;
  const long = Array.from({ length: 40 }, () =>
    pool.run("decode_push", { input }, { lane: busy, share: share("bombs") }).then(() => ended++),
  );
  for (let i = 0; i < 20; i++) await one();
  expect(ended).toBeLessThan(20);
  await Promise.all(long);
}
