import { expect, it } from "@jest/globals";
import { RowStore } from "./log-rows.js";

const place = { day: 0, time: 0, stream: 0, sequence: 0 };
const lengths = Array.from({ length: 3000 }, (_, i) =>
  i === 1000 ? 5_000_000 : (i * 7919) % 9000,
);
const storeOf = (sizes: readonly number[]) => {
  const store = new RowStore();
  for (const [row, size] of sizes.entries())
    store.push({ ...place, row, labelSet: row % 5 }, new Uint8Array(size).fill(row % 251));
  return store;
};

it("leaves lines where they are when it grows, in little more memory than they take", () => {
  const store = storeOf(lengths.slice(0, 100));
  const before = Array.from({ length: 100 }, (_, at) => store.line(at).buffer);
  for (let i = 0; i < 2000; i++)
    store.push({ ...place, row: 0, labelSet: 0 }, new Uint8Array(4000));
  expect(before.every((buffer, at) => store.line(at).buffer === buffer)).toBe(true);
  const pieces = new Set(Array.from({ length: store.count }, (_, at) => store.line(at).buffer));
  const held = [...pieces].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(held).toBeLessThan(store.bytes.length + 1.1 * 1024 * 1024);
});

it("moves rows in an order, and their lines to one column", () => {
  const store = storeOf(lengths);
  const wanted = storeOf(lengths);
  const order = Uint32Array.of(2999, 1000, 0, 1001, 5);
  const moved = store.moved(order, (labelSet) => labelSet + 10);
  const { bytes, offsets } = moved.lines();
  for (const [i, at] of order.entries()) {
    expect(Buffer.compare(bytes.subarray(offsets[i], offsets[i + 1]), wanted.line(at))).toBe(0);
    expect(moved.place(i)).toEqual({ ...wanted.place(at), labelSet: (at % 5) + 10 });
  }
  expect(bytes.length).toBe(offsets[5]! + 64);
  // Large pieces are given back.
  const kept = store.bytes.pieces.map((piece) => piece.length);
  expect(kept.filter((length) => length >= 2 ** 22)).toEqual([]);
  expect(kept).toContain(0);
});
