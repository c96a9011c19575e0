import { describe, expect, it } from "@jest/globals";
import type { PushRefusal } from "@skald/contracts";
import type { Batch } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { makeReplicas, type Replicas } from "./testing/replicas.js";

const signal = new AbortController().signal;
const tooOld: PushRefusal = {
  ...{ status: 400, reason: "too_far_behind", message: "entry too far behind" },
  ...{ entries: 1, bytes: 5 },
};

/** A batch of as many streams of one row each. */
function streams(count: number, name = "s"): Batch {
  return makeBatch(
    Array.from({ length: count }, (_, i) => ({
      labels: { app: `${name}${i}` },
      rows: [{ ns: BigInt(i) * 1_000_000_000n, line: `line ${name}${i}`, metadata: { n: `${i}` } }],
    })),
  );
}

function push({ replicator }: Replicas, batch: Batch, held: Promise<unknown>[] = []) {
  const hold = (until: Promise<unknown>) => void held.push(until);
  return replicator.push({ tenant: "t", batch }, { signal, hold });
}

describe("a push to three ingesters", () => {
  it("is the same object for each", async () => {
    const replicas = makeReplicas(3);
    const batch = streams(5);
    expect(await push(replicas, batch)).toEqual({ refusals: [] });
    for (const { batches } of replicas.all) expect(batches).toEqual([batch]);
    for (const { batches } of replicas.all) expect(batches[0]).toBe(batch);
  });

  it("is taken while one is dead, and no longer when two are", async () => {
    const replicas = makeReplicas(3);
    replicas.all[0]!.state = "dead";
    expect(await push(replicas, streams(5))).toEqual({ refusals: [] });
    replicas.all[1]!.state = "dead";
    const { replicator } = replicas;
    await expect(replicator.push({ tenant: "t", batch: streams(5) }, { signal })).rejects.toEqual(
      expect.objectContaining({ status: 503, message: "ingester i0: connection refused" }),
    );
  });

  it("is unavailable, and says who is slow, while two stand still", async () => {
    const replicas = makeReplicas(3);
    for (const one of replicas.all.slice(1)) one.state = "stuck";
    const asked = push(replicas, streams(5)).catch((error: unknown) => error);
    replicas.timeOut();
    expect(await asked).toMatchObject({
      ...{ name: "SkaldError", code: "unavailable", status: 503 },
      message: "ingester i1: no answer in time",
    });
  });

  it("is answered while one is stuck, which goes on behind the answer", async () => {
    const replicas = makeReplicas(3);
    replicas.all[1]!.state = "stuck";
    const held: Promise<unknown>[] = [];
    await push(replicas, streams(2), held);
    expect(replicas.all.map(({ batches }) => batches.length)).toEqual([1, 0, 1]);
    replicas.all[1]!.release();
    await Promise.all(held);
    expect(replicas.all.map(({ batches }) => batches.length)).toEqual([1, 1, 1]);
  });

  it("ends for one that is stuck when its time is over", async () => {
    const replicas = makeReplicas(3);
    replicas.all[1]!.state = "stuck";
    const held: Promise<unknown>[] = [];
    await push(replicas, streams(2), held);
    replicas.timeOut();
    await Promise.all(held);
    expect(replicas.all[1]!.batches).toEqual([]);
    const { text } = await replicas.metrics.read();
    expect(text).toContain('distributor_ingester_append_failures_total{ingester="i1"} 1');
    expect(text).toContain('distributor_ingester_append_timeouts_total{ingester="i1"} 1');
  });

  it("leaves out one that is too far behind, until it has caught up", async () => {
    const replicas = makeReplicas(3, { maxBytesBehind: 100 });
    const slow = replicas.all[2]!;
    slow.state = "stuck";
    const held: Promise<unknown>[] = [];
    for (let i = 0; i < 5; i++) await push(replicas, streams(2, `p${i}`), held);
    slow.state = "well";
    slow.release();
    await Promise.all(held);
    expect(slow.batches).toHaveLength(1);
    await push(replicas, streams(2, "later"));
    expect(slow.batches).toHaveLength(2);
  });

  it("fails when the ring has too few", async () => {
    const replicas = makeReplicas(3);
    replicas.lose("i0");
    await push(replicas, streams(3));
    expect(replicas.all[0]!.batches).toEqual([]);
    replicas.lose("i1");
    await expect(push(replicas, streams(3))).rejects.toThrow(
      "at least 2 live replicas required, could only find 1 - unhealthy instances: i0,i1",
    );
  });
});

describe("rows that are refused", () => {
  it("are reported once when a quorum refuses them", async () => {
    const replicas = makeReplicas(3);
    for (const one of replicas.all) one.refusals = [tooOld];
    expect(await push(replicas, streams(2))).toEqual({ refusals: [tooOld] });
  });

  it("are not when a quorum took them", async () => {
    const replicas = makeReplicas(3);
    replicas.all[0]!.refusals = [tooOld];
    expect(await push(replicas, streams(2))).toEqual({ refusals: [] });
  });

  it("are when one took them, one refused and one is dead", async () => {
    const replicas = makeReplicas(3);
    replicas.all[0]!.refusals = [tooOld];
    replicas.all[2]!.state = "dead";
    expect(await push(replicas, streams(2))).toEqual({ refusals: [tooOld] });
  });

  it("wait for the last answer when the first two disagree", async () => {
    const replicas = makeReplicas(3);
    replicas.all[0]!.refusals = [tooOld];
    replicas.all[2]!.state = "stuck";
    const outcome = push(replicas, streams(2));
    replicas.all[2]!.release();
    expect(await outcome).toEqual({ refusals: [] });
  });
});

describe("a push to many ingesters", () => {
  it("sends each stream to three of them", async () => {
    const replicas = makeReplicas(9);
    await push(replicas, streams(200));
    const found = new Map<string, number>();
    for (const row of replicas.all.flatMap((one) => one.rows()))
      found.set(row, (found.get(row) ?? 0) + 1);
    expect(found.size).toBe(200);
    expect(new Set(found.values())).toEqual(new Set([3]));
    for (const { batches } of replicas.all) expect(batches.length).toBeLessThanOrEqual(1);
  });

  it("sends a stream to the same ones again", async () => {
    const replicas = makeReplicas(9);
    await push(replicas, streams(1));
    await push(replicas, streams(1));
    expect(replicas.all.map((one) => one.rows().length).sort()).toEqual([
      0, 0, 0, 0, 0, 0, 2, 2, 2,
    ]);
  });

  it("fails when one of its streams has no quorum, and not before", async () => {
    const replicas = makeReplicas(9);
    replicas.all[0]!.state = "dead";
    await push(replicas, streams(200));
    for (const one of replicas.all.slice(0, 2)) one.state = "stuck";
    const asked = push(replicas, streams(200)).catch((error: unknown) => error);
    replicas.timeOut();
    expect(await asked).toMatchObject({ status: 503 });
  });

  it("goes on to others when ingesters stop before the ring shows it", async () => {
    const replicas = makeReplicas(9);
    for (const one of replicas.all.slice(0, 4)) one.state = "dead";
    const held: Promise<unknown>[] = [];
    expect(await push(replicas, streams(200), held)).toEqual({ refusals: [] });
    await Promise.all(held);
    const found = new Map<string, Set<string>>();
    for (const one of replicas.all)
      for (const row of one.rows()) found.set(row, (found.get(row) ?? new Set()).add(one.id));
    expect(found.size).toBe(200);
    for (const places of found.values()) expect(places.size).toBeGreaterThanOrEqual(3);
    for (const one of replicas.all.slice(0, 4)) expect(one.rows()).toEqual([]);
  });

  it("keeps a tenant to its shard, and a shard to a quorum at least", async () => {
    for (const [size, used] of [
      [4, 4],
      [1, 3],
    ]) {
      const replicas = makeReplicas(9, { shardSizeOf: () => size! });
      await push(replicas, streams(100));
      expect(replicas.all.filter(({ batches }) => batches.length > 0)).toHaveLength(used!);
    }
  });

  it("has a copy in each zone", async () => {
    const zones = ["a", "b", "c"];
    const replicas = makeReplicas(9, { zones });
    await push(replicas, streams(100));
    for (const zone of [0, 1, 2]) {
      const rows = replicas.all.filter((_, i) => i % 3 === zone).flatMap((one) => one.rows());
      expect(new Set(rows).size).toBe(100);
      expect(rows).toHaveLength(100);
    }
  });
});
