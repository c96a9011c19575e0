import { expect, it } from "@jest/globals";
import { makeBatch } from "@skald/testkit";
import { Head, HeadMemory, PinnedFiles } from "./head.js";

it("names its blocks alike in views of any range", () => {
  const memory = new HeadMemory({ maxBytes: 0 });
  const files = new PinnedFiles();
  const head = new Head({ id: "h", tenant: "t", day: 0, nowMs: 0, memory, files });
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
