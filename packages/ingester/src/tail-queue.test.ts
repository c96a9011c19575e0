import { mock } from "node:test";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import type { TailRows } from "@skald/contracts";
import { emptyLabels } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { TailQueue } from "./tails.js";
import { everything, setUp } from "./testing/ingester.js";

function rowsOf(bytes: number): NonNullable<TailRows["rows"]> {
  const labels = emptyLabels;
  const categories = { stream: labels, structuredMetadata: labels, parsed: labels };
  return {
    kind: "streams",
    rowCount: 1,
    timestamps: BigInt64Array.of(5n),
    labelSet: Uint32Array.of(0),
    lines: {
      columns: [{ bytes: new Uint8Array(bytes), offsets: Uint32Array.of(0, bytes) }],
      column: Uint32Array.of(0),
      value: Uint32Array.of(0),
    },
    labels: [{ labels, categories }],
    warnings: [],
  };
}

describe("TailQueue", () => {
  it("begins with an item without rows, drops what has no room, and tells of it", async () => {
    const queue = new TailQueue({ maxBytes: 10, maxDropped: 2 });
    expect(
      [6, 6, 6, 6, 4].map((bytes) => queue.offer({ rows: rowsOf(bytes), dropped: [] })),
    ).toEqual([0, 1, 1, 1, 0]);
    queue.end();
    const items: [number | undefined, number, number | undefined][] = [];
    for await (const { rows, dropped, unnamed } of queue.read()) {
      items.push([rows?.lines.columns[0]?.bytes.length, dropped.length, unnamed]);
    }
    expect(items).toEqual([
      [undefined, 0, undefined],
      [6, 0, undefined],
      [4, 2, 1],
    ]);
  });

  it("takes rows of any size when it is empty", () => {
    const queue = new TailQueue({ maxBytes: 10, maxDropped: 2 });
    expect(queue.offer({ rows: rowsOf(100), dropped: [] })).toBe(0);
  });

  it("ends with an error behind what is there", async () => {
    const queue = new TailQueue({ maxBytes: 10, maxDropped: 2 });
    queue.end(new Error("broken"));
    const reader = queue.read();
    expect(await reader.next()).toEqual({ done: false, value: { dropped: [] } });
    await expect(reader.next()).rejects.toThrow("broken");
  });
});

it("pauses for the time that a thread worked, not for the time that a task waited for it", async () => {
  let tasks = 0;
  const workMs = [1, 5000, 1];
  const release: (() => void)[] = [];
  const { ingester } = await setUp({
    beforeTails: async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return workMs[tasks++];
    },
  });
  await ingester.start();
  const closing = new AbortController();
  const tail = ingester.tail({ ...everything, tenant: "a", stages: [] }, closing);
  const rows = tail[Symbol.asyncIterator]();
  await rows.next();
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const push = (ns: bigint) => {
      const rows = [{ ns: 1_760_000_000_000_000_000n + ns, line: "line" }];
      return ingester.push({ tenant: "a", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
    };
    const pass = async (ms: number) => {
      for (let turn = 0; turn < 20; turn++) await setImmediate();
      mock.timers.tick(ms);
      for (let turn = 0; turn < 20; turn++) await setImmediate();
    };
    await push(1n);
    await pass(200);
    expect(release).toHaveLength(1);
    await push(2n);
    // The first task waits for a thread.
    await pass(1500);
    release[0]?.();
    await rows.next();
    await pass(200);
    expect(release).toHaveLength(2);
    await push(3n);
    release[1]?.();
    await rows.next();
    // The second one took 5 s of a thread.
    await pass(4900);
    expect(release).toHaveLength(2);
    await pass(100);
    expect(release).toHaveLength(3);
    release[2]?.();
    await rows.next();
  } finally {
    mock.timers.reset();
  }
  closing.abort();
  await ingester.stop();
});
