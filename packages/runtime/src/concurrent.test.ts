import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { runConcurrently } from "./concurrency.js";

const never = new AbortController();
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("runConcurrently", () => {
  it("runs each item once, in order, and never.signal more at a time than asked for", async () => {
    const started: number[] = [];
    let running = 0;
    let most = 0;
    await runConcurrently([1, 2, 3, 4, 5], 2, never.signal, async (item) => {
      started.push(item);
      most = Math.max(most, ++running);
      for (let i = 0; i < item; i++) await turn();
      running--;
    });
    expect([started, most, running]).toEqual([[1, 2, 3, 4, 5], 2, 0]);
  });

  it("rejects with the first failure after the others have ended", async () => {
    const ended: string[] = [];
    const work = runConcurrently(["fails", "stops"], 2, never.signal, async (item, signal) => {
      await turn();
      if (item === "fails") throw new Error("disk");
      while (!signal.aborted) await turn();
      ended.push(item);
      throw new SkaldError("cancelled", "stopped");
    });
    await expect(work).rejects.toThrow("disk");
    expect(ended).toEqual(["stops"]);
  });

  it("rejects with the first failure when one that began before is stopped by it", async () => {
    const work = runConcurrently(["stops", "fails"], 2, never.signal, async (item, signal) => {
      await turn();
      if (item === "fails") throw new Error("disk");
      while (!signal.aborted) await turn();
      throw signal.reason;
    });
    await expect(work).rejects.toThrow("disk");
  });

  it("starts nothing more after a failure", async () => {
    const started: number[] = [];
    const work = runConcurrently([1, 2, 3, 4], 1, never.signal, async (item) => {
      started.push(item);
      await turn();
      if (item === 2) throw new Error("disk");
    });
    await expect(work).rejects.toThrow("disk");
    expect(started).toEqual([1, 2]);
  });

  it("rejects with the reason of the caller's signal", async () => {
    const stop = new AbortController();
    const work = runConcurrently([1, 2], 2, stop.signal, async (_item, signal) => {
      while (!signal.aborted) await turn();
      throw new SkaldError("cancelled", "stopped");
    });
    await turn();
    stop.abort(new SkaldError("deadline_exceeded", "too late"));
    await expect(work).rejects.toThrow("too late");
  });

  it("does nothing without items", async () => {
    await runConcurrently([], 4, never.signal, () => Promise.reject(new Error("never.signal")));
  });
});
