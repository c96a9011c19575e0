import { describe, expect, it } from "@jest/globals";
import { Releases } from "./releases.js";

describe("Releases", () => {
  function open(takesMany: boolean) {
    const calls: (readonly string[])[] = [];
    const state = { failure: undefined as unknown };
    const due: (() => void)[] = [];
    const send = async (views: readonly string[]) => {
      calls.push(views);
      if (state.failure !== undefined) throw state.failure;
      return { takesMany };
    };
    const releases = new Releases(send, (run) => void due.push(run));
    /** Runs what was to be run later. */
    const wait = async () => {
      for (const run of due.splice(0)) run();
      await new Promise(setImmediate);
    };
    return { releases, calls, state, wait };
  }

  it("gives views back one by one to who does not say that it takes several", async () => {
    const { releases, calls } = open(false);
    for (const view of ["a", "b"]) await releases.add(view);
    expect(calls).toEqual([["a"], ["b"]]);
  });

  it("gives several back in a call, soon or when they are many", async () => {
    const { releases, calls, wait } = open(true);
    for (const view of ["a", "b", "c"]) await releases.add(view);
    expect(calls).toEqual([["a"]]);
    await wait();
    expect(calls).toEqual([["a"], ["b", "c"]]);
    const many = Array.from({ length: 100 }, (_, i) => `v${i}`);
    for (const view of many) await releases.add(view);
    expect(calls[2]).toEqual(many);
    await wait();
    expect(calls).toHaveLength(3);
  });

  it("asks again what it may do when a call failed", async () => {
    const { releases, calls, state, wait } = open(true);
    await releases.add("a");
    await releases.add("b");
    state.failure = new Error("lost");
    await wait();
    state.failure = undefined;
    await releases.add("c");
    expect(calls).toEqual([["a"], ["b"], ["c"]]);
  });
});
