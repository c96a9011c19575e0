import { expect, it } from "@jest/globals";
import type { SegmentRef } from "@skald/model";
import { DroppedCopies } from "./local-segments.js";

const ref: SegmentRef = {
  ...{ kind: "segment", id: "s", tenant: "t", minNs: 7n, maxNs: 9n, sizeBytes: 1 },
  location: { kind: "file", path: "s" },
};

function copies(retainMs: number) {
  const clock = { ms: 1000, elapsedMs: () => clock.ms };
  return { clock, dropped: new DroppedCopies({ clock, retainMs }) };
}

it("tells how long ago the last one was stored, for as long as a listing may lack it", () => {
  const { clock, dropped } = copies(100);
  clock.ms = 100_000;
  dropped.note(ref, 90_000);
  dropped.note({ ...ref, minNs: 3n }, 80_000);
  dropped.note({ ...ref, tenant: "u", minNs: 5n }, 99_000);
  expect([dropped.storedAgoMs("t"), dropped.storedAgoMs("u"), dropped.oldestNs()]).toEqual([
    10_000,
    1000,
    3n,
  ]);
  clock.ms = 140_001;
  expect([dropped.storedAgoMs("t"), dropped.oldestNs()]).toEqual([50_001, 5n]);
  clock.ms = 160_001;
  expect([dropped.storedAgoMs("t"), dropped.oldestNs()]).toEqual([undefined, undefined]);
});

it("does not know what an earlier process dropped, until all listings are younger than that", () => {
  const { clock, dropped } = copies(100);
  clock.ms = 61_000;
  expect([dropped.storedAgoMs("t"), dropped.oldestNs()]).toEqual([60_000, 0n]);
  clock.ms++;
  expect([dropped.storedAgoMs("t"), dropped.oldestNs()]).toEqual([undefined, undefined]);
});

it("has nothing to say where copies stay longer than listings", () => {
  const { dropped } = copies(60_001);
  dropped.note(ref, 1000);
  expect([dropped.storedAgoMs("t"), dropped.oldestNs()]).toEqual([undefined, undefined]);
});
