import { describe, expect, it } from "@jest/globals";
import { paddingBytes } from "@skald/model";
import { PushMemoryPool } from "./push-memory.js";

const mib = 1024 * 1024;

describe("PushMemoryPool", () => {
  it("gives the same buffers again, where they are long enough", () => {
    const pool = new PushMemoryPool();
    const first = pool.take();
    const taken = [1000, 2000].map((length) => first.take(length));
    expect(taken.map(({ length, byteOffset }) => [length, byteOffset])).toEqual([
      [1000, 0],
      [2000, 0],
    ]);
    expect(taken[0]?.buffer.byteLength).toBeGreaterThanOrEqual(1000 + paddingBytes);
    pool.give(first);
    const again = pool.take();
    expect(again.take(1100).buffer).toBe(taken[0]?.buffer);
    expect(again.take(100_000).buffer).not.toBe(taken[1]?.buffer);
  });

  it("has nobody share a buffer", () => {
    const pool = new PushMemoryPool();
    const memories = [pool.take(), pool.take()];
    const buffers = memories.flatMap((memory) => [memory.take(10).buffer, memory.take(10).buffer]);
    expect(new Set(buffers).size).toBe(4);
  });

  it("keeps no large buffer, and not too many", () => {
    const pool = new PushMemoryPool();
    const large = pool.take();
    const buffer = large.take(5 * mib).buffer;
    pool.give(large);
    expect(buffer.byteLength).toBe(0);
    expect(pool.take().take(5 * mib).buffer).not.toBe(buffer);
    const many = Array.from({ length: 40 }, () => pool.take());
    const buffers = new Set(many.map((memory) => memory.take(2 * mib).buffer));
    for (const memory of many) pool.give(memory);
    expect([...buffers].filter(({ byteLength }) => byteLength > 0)).toHaveLength(25);
    const known = many.filter(() => buffers.has(pool.take().take(2 * mib).buffer));
    // 25 of 2.5 MiB and one that held nothing.
    expect(known).toHaveLength(25);
  });
});
