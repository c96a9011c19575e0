import { describe, expect, it } from "@jest/globals";
import { makeBatch, until } from "@skald/testkit";
import { readRows, type Setup, type SetupOptions, setUp } from "../testing/ingester.js";

const dayNs = 86_400_000_000_000n;
const KiB = 1024;

async function started(options: SetupOptions = {}): Promise<Setup> {
  const setup = await setUp(options);
  await setup.ingester.start();
  return setup;
}

async function metric({ metrics }: Setup, name: string): Promise<number> {
  const { text } = await metrics.read();
  const values = text.split("\n").filter((line) => line.startsWith(`loki_ingester_${name}`));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** A push with one row a day. */
function pushDays({ ingester }: Setup, days: number) {
  const rows = Array.from({ length: days }, (_, day) => ({
    ns: BigInt(day) * dayNs,
    line: `${day} ${"x".repeat(200)}`,
  }));
  return ingester.push({ tenant: "t", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

describe("a push over many days", () => {
  const changes = { max_chunk_age: Number.POSITIVE_INFINITY };

  it("takes memory as its days have rows", async () => {
    const setup = await started({ changes });
    await pushDays(setup, 500);
    expect(await metric(setup, "memory_chunks")).toBe(500);
    expect(await metric(setup, "head_memory_bytes")).toBeLessThan(500 * 12 * KiB);
    expect(await readRows(setup.ingester, "t")).toHaveLength(500);
    await setup.ingester.stop();
  });

  it("is brought below the ceiling at once, also while it is replayed", async () => {
    const first = await started({ changes });
    await pushDays(first, 300);
    const memory = await metric(first, "head_memory_bytes");
    await first.ingester.stop();
    const wal = { replay_memory_ceiling: memory / 3 };
    const second = await started({ dir: first.dir, changes: { ...changes, wal } });
    expect(await metric(second, "head_memory_bytes")).toBeLessThan(memory / 3);
    expect(await readRows(second.ingester, "t")).toHaveLength(300);
    await second.ingester.stop();
  });
});

describe("many tenants", () => {
  it("are freed in bulk, the largest first", async () => {
    const ceiling = 100 * 12 * KiB;
    const setup = await started({ changes: { max_head_memory: ceiling } });
    const push = (tenant: string, ns: number, line: string) => {
      const rows = [{ ns: BigInt(ns), line }];
      return setup.ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
    };
    await push("large", 1, "x".repeat(200 * KiB));
    let small = 0;
    while ((await metric(setup, "flush_queue_length")) === 0) {
      await push(`small ${small++}`, 1, "line");
    }
    await until(async () => (await metric(setup, "flush_queue_length")) === 0);
    // The large one and a third of the small ones; the next pushes meet no ceiling.
    expect(await metric(setup, "head_memory_bytes")).toBeLessThanOrEqual(0.75 * ceiling);
    const flushed = await metric(setup, "chunks_flushed_total");
    for (let i = 0; i < 10; i++) await push(`late ${i}`, 1, "line");
    expect(await metric(setup, "chunks_flushed_total")).toBe(flushed);
    expect(await metric(setup, 'chunks_flushed_total{reason="memory"}')).toBe(flushed);
    const { sources } = await setup.ingester.select({
      tenant: "large",
      matchers: [],
      fromNs: 0n,
      toNs: dayNs,
    });
    expect(sources.map(({ kind }) => kind)).toEqual(["segment"]);
    await setup.ingester.stop();
  });

  it("do not count what waits to be sealed as if it could be freed", async () => {
    const ceiling = 50 * 12 * KiB;
    let giveUp = (_: Error): void => undefined;
    const held = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const seal = () => held;
    const setup = await started({ changes: { max_head_memory: ceiling }, seal });
    for (let i = 0; i < 120; i++) {
      const rows = [{ ns: 1n, line: "line" }];
      const batch = makeBatch([{ labels: { app: "a" }, rows }]);
      await setup.ingester.push({ tenant: `t${i}`, batch });
    }
    const frozen = await metric(setup, "flush_queue_length");
    expect(frozen).toBeGreaterThan(0);
    expect(frozen).toBeLessThan(100);
    const stopped = setup.ingester.stop();
    giveUp(new Error("given up"));
    await stopped;
  });
});

describe("rows that each have a name of metadata of their own", () => {
  const pushNames = ({ ingester }: Setup, from: number, count: number) => {
    const rows = Array.from({ length: count }, (_, i) => {
      return { ns: BigInt(from + i), line: "x", metadata: { [`name${from + i}`]: "v" } };
    });
    return ingester.push({ tenant: "t", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };

  it("take memory as they hold, in blocks of few rows", async () => {
    const setup = await started();
    await pushNames(setup, 0, 5000);
    expect(await metric(setup, "head_memory_bytes")).toBeLessThan(5000 * 512);
    expect(await readRows(setup.ingester, "t")).toHaveLength(5000);
    await setup.ingester.flush();
    expect(await metric(setup, "head_memory_bytes")).toBe(0);
    await setup.ingester.stop();
  });

  it("make a head full before its names cost much", async () => {
    const setup = await started();
    for (let from = 0; from < 40_000; from += 8000) await pushNames(setup, from, 8000);
    await until(async () => (await metric(setup, "chunks_flushed_total")) === 1);
    expect(await readRows(setup.ingester, "t")).toHaveLength(40_000);
    await setup.ingester.stop();
  });
});
