import { setTimeout } from "node:timers/promises";
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
    lines: { bytes: new Uint8Array(bytes), offsets: Uint32Array.of(0, bytes) },
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
    const items: [number | undefined, number][] = [];
    for await (const { rows, dropped } of queue.read()) {
      items.push([rows?.lines.bytes.length, dropped.length]);
    }
    expect(items).toEqual([
      [undefined, 0],
      [6, 0],
      [4, 2],
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

it("does not pause for the time that a task waited for a thread", async () => {
  let tasks = 0;
  const beforeTails = async () => {
    tasks++;
    if (tasks === 1) await setTimeout(1500);
  };
  const { ingester } = await setUp({ beforeTails });
  await ingester.start();
  const closing = new AbortController();
  const tail = ingester.tail({ ...everything, tenant: "a", stages: [] }, closing);
  const rows = tail[Symbol.asyncIterator]();
  await rows.next();
  const push = (ns: bigint) => {
    const rows = [{ ns: 1_760_000_000_000_000_000n + ns, line: "line" }];
    return ingester.push({ tenant: "a", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };
  await push(1n);
  while (tasks === 0) await setTimeout(10);
  await push(2n);
  await rows.next();
  const sinceMs = performance.now();
  await rows.next();
  // As long a pause as the wait would take 1.5 s.
  expect(performance.now() - sinceMs).toBeLessThan(1000);
  closing.abort();
  await ingester.stop();
});
