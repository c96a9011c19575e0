import { mock } from "node:test";
import v8 from "node:v8";
import { describe, expect, it } from "@jest/globals";
import { collectGarbage, IdleCollection, knowsSaving, ownHeap } from "./collection.js";

const mib = 1024 * 1024;

/** A watched heap. Sizes are in MiB. */
function heapOf(live: number, garbage = 0) {
  const heap = { live, garbage, buffers: 0, busy: 0, collections: 0, isSaving: false };
  const watched = new IdleCollection({
    usedBytes: () => ({ objects: (heap.live + heap.garbage) * mib, buffers: heap.buffers * mib }),
    busyCores: () => heap.busy,
    collect: () => {
      heap.garbage = 0;
      heap.collections++;
    },
    saveMemory: (isOn) => {
      heap.isSaving = isOn;
    },
  });
  return { heap, look: () => watched.look() };
}

describe("an idle thread", () => {
  it("frees what a burst of work has left, once that is over", () => {
    const { heap, look } = heapOf(50, 300);
    heap.busy = 2;
    look();
    expect(heap.garbage).toBe(300);
    for (let second = 0; second < 20; second++) look();
    heap.busy = 0.1;
    let seconds = 0;
    for (; heap.garbage > 0; seconds++) look();
    expect(seconds).toBe(14);
  });

  it("collects neither beside work of some seconds nor beside work that has just begun", () => {
    const { heap, look } = heapOf(50);
    const left = [0.4, 2, 2, 2, 0.4].map((busy) => {
      heap.garbage = 300;
      heap.busy = busy;
      look();
      return heap.garbage;
    });
    expect(left).toEqual([0, 300, 300, 300, 300]);
  });

  it("saves memory for half a minute then", () => {
    const { heap, look } = heapOf(50);
    const savingSeconds = (seconds: number, busy: number) => {
      heap.busy = busy;
      let saving = 0;
      for (let second = 0; second < seconds; second++) {
        look();
        if (heap.isSaving) saving++;
      }
      return saving;
    };
    expect(savingSeconds(60, 0.1)).toBe(0);
    expect(savingSeconds(60, 2)).toBe(0);
    expect(savingSeconds(60, 0.1)).toBe(30);
    expect(savingSeconds(60, 2)).toBe(0);
    savingSeconds(20, 0.1);
    expect(heap.isSaving).toBe(true);
    expect(savingSeconds(60, 2)).toBeLessThan(5);
  });

  it("leaves a heap alone that is not much larger than after the last time", () => {
    const { heap, look } = heapOf(200);
    look();
    heap.garbage = 199;
    look();
    look();
    expect(heap.collections).toBe(1);
    heap.garbage = 201;
    look();
    expect(heap.collections).toBe(2);
  });

  it("collects for buffers, however many are in use, when they are worth looking at the objects", () => {
    const { heap, look } = heapOf(200);
    heap.buffers = 1000;
    look();
    heap.buffers += 99;
    look();
    expect(heap.collections).toBe(1);
    heap.buffers += 2;
    look();
    expect(heap.collections).toBe(2);
  });

  it("compares with what is left when V8 has collected since", () => {
    const { heap, look } = heapOf(500);
    look();
    heap.live = 50;
    look();
    heap.garbage = 63;
    look();
    expect(heap.collections).toBe(1);
    heap.garbage = 65;
    look();
    expect(heap.collections).toBe(2);
  });

  it("tells V8 once that memory shall be saved, and that it need not be, where V8 knows that", () => {
    const set = mock.method(v8, "setFlagsFromString", () => undefined);
    const { saveMemory } = ownHeap();
    for (const isOn of [false, true, true, false]) saveMemory(isOn);
    const flags = set.mock.calls.map(({ arguments: [flag] }) => flag);
    set.mock.restore();
    const told = ["--memory-saver-mode", "--no-memory-saver-mode"];
    expect(flags).toEqual(knowsSaving(process.versions.node) ? told : []);
    expect(["20.20.2", "22.12.0", "24.0.1"].map(knowsSaving)).toEqual([false, false, true]);
  });

  it("counts what buffers hold", () => {
    collectGarbage();
    const { usedBytes } = ownHeap();
    const before = usedBytes().buffers;
    const buffer = Buffer.allocUnsafeSlow(512 * mib);
    expect(usedBytes().buffers - before).toBeGreaterThan(buffer.length / 2);
  });

  it("collects indeed", async () => {
    let held: object | undefined = {};
    const seen = new WeakRef(held);
    held = undefined;
    // What was dereferenced in this turn is kept until its end.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(seen.deref()).toBeUndefined();
  });
});
