import { expect, it } from "@jest/globals";
import { makeBatch } from "@skald/testkit";
import { Head, HeadMemory, PinnedFiles } from "./head.js";

function makeHead(): Head {
  const memory = new HeadMemory({ maxBytes: 0 });
  const files = new PinnedFiles();
  return new Head({ id: "h", tenant: "t", day: 0, nowMs: 0, memory, files });
}

it("names its blocks alike in views of any range", () => {
  const head = makeHead();
  const count = 8;
  for (let i = 0; i < count; i++) {
    const rows = [{ ns: BigInt(i), line: "x".repeat(4000) }];
    head.append(makeBatch([{ labels: { app: "a" }, rows }]), 0, 1, 1);
  }
  head.publish(head.mark());
  const all = head.view(0, count);
  expect(all.length).toBeGreaterThan(2);
  expect(all.map(({ number }) => number)).toEqual([...all.keys()]);
  const last = head.view(count - 1, count);
  expect(last.map(({ number }) => number)).toEqual([all.length - 1]);
});

it("knows the size of the rows of some streams", () => {
  const head = makeHead();
  const append = (line: string, stream: number) =>
    head.append(makeBatch([{ labels: { app: "a" }, rows: [{ ns: 1n, line }] }]), 0, 1, stream);
  for (let i = 0; i < 100; i++) append("x".repeat(10_000), 1);
  for (let i = 0; i < 3; i++) append("y".repeat(100), 2);
  append("x", 1);
  append("y", 2);
  const sizeOf = (...streams: number[]) => head.sizeOf(Uint32Array.from(streams));
  expect([sizeOf(), sizeOf(2), sizeOf(1)]).toEqual([0, 301 + 4 * 64, 1_000_001 + 101 * 64]);
  expect(sizeOf(1, 2)).toBe(sizeOf(1) + sizeOf(2));
  const mark = head.mark();
  for (let i = 0; i < 5000; i++) append("", 2 + (i % 2));
  expect([sizeOf(2), sizeOf(3)]).toEqual([301 + 2504 * 64, 2500 * 64]);
  head.truncate(mark);
  expect([sizeOf(2), sizeOf(3)]).toEqual([301 + 4 * 64, 0]);
});
