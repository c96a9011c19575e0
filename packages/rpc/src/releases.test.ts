import { describe, expect, it } from "@jest/globals";
import { Releases } from "./ingester.js";

describe("Releases", () => {
  function open() {
    const calls: (readonly string[])[] = [];
    const state = { failure: undefined as unknown };
    const due: (() => void)[] = [];
    const waits: number[] = [];
    const send = async (views: readonly string[]) => {
      calls.push(views);
      if (state.failure !== undefined) throw state.failure;
    };
    const releases = new Releases(send, (run, ms) => {
      due.push(run);
      waits.push(ms);
    });
    /** Runs what was to be run later. */
    const wait = async () => {
      for (const run of due.splice(0)) run();
      await new Promise(setImmediate);
    };
    return { releases, calls, state, wait, waits };
  }

  it("gives nothing back for two seconds, in which others may come", () => {
    const { releases, calls, waits } = open();
    for (const view of ["a", "b"]) releases.add(view);
    expect([calls, waits]).toEqual([[], [2000]]);
  });

  it("gives several back in a call, soon or when they are many", async () => {
    const { releases, calls, wait } = open();
    for (const view of ["a", "b", "c"]) releases.add(view);
    await wait();
    expect(calls).toEqual([["a", "b", "c"]]);
    const many = Array.from({ length: 100 }, (_, i) => `v${i}`);
    for (const view of many) releases.add(view);
    expect(calls[1]).toEqual(many);
    await wait();
    expect(calls).toHaveLength(2);
  });

  it("goes on when a call failed", async () => {
    const { releases, calls, state, wait } = open();
    releases.add("a");
    state.failure = new Error("lost");
    await wait();
    state.failure = undefined;
    releases.add("b");
    await wait();
    expect(calls).toEqual([["a"], ["b"]]);
  });
});
