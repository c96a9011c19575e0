import { describe, expect, it } from "@jest/globals";
import type { LogPlan } from "@skald/logql";
import { never, planOf } from "../testing/requests.js";
import { guessOutcome, ScanRoom } from "./scan-room.js";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function roomOf(maxBytes: number) {
  let held = 0;
  const budget = {
    holdElsewhere: (bytes: number) => {
      held += bytes;
    },
    releaseElsewhere: (bytes: number) => {
      held -= bytes;
    },
  };
  return { room: new ScanRoom(budget, { threads: 2, maxBytes }), held: () => held };
}

describe("ScanRoom", () => {
  it("counts what scans hold by what those before have found", async () => {
    const { room, held } = roomOf(1000);
    const first = await room.enter(never.signal, 0);
    expect(held()).toBe(0);
    room.learn(100);
    room.learn(10);
    first();
    const both = [await room.enter(never.signal, 0), await room.enter(never.signal, 0)];
    expect(held()).toBe(600);
    for (const leave of both) leave();
    expect(held()).toBe(0);
  });

  it("lets fewer scans run where they find much, but always one", async () => {
    const { room, held } = roomOf(1000);
    room.learn(5000);
    const leave = await room.enter(never.signal, 0);
    let isIn = false;
    const second = room.enter(never.signal, 0).then((done) => {
      isIn = true;
      return done;
    });
    await turn();
    expect([isIn, held()]).toEqual([false, 15_000]);
    leave();
    (await second)();
    expect([isIn, held()]).toEqual([true, 0]);
  });

  it("counts a guess for each first scan, one a thread, until one came back", async () => {
    const { room, held } = roomOf(1000);
    const first = await room.enter(never.signal, 100);
    const second = await room.enter(never.signal, 50);
    expect(held()).toBe(450);
    let isIn = false;
    const third = room.enter(never.signal, 100).then((leave) => {
      isIn = true;
      return leave;
    });
    await turn();
    expect(isIn).toBe(false);
    room.learn(20);
    expect(held()).toBe(120);
    first();
    const leave = await third;
    expect(held()).toBe(120);
    second();
    leave();
    expect(held()).toBe(0);
  });

  it("lets a first scan of each thread run, however much it may find", async () => {
    const { room, held } = roomOf(1000);
    const both = [await room.enter(never.signal, 300), await room.enter(never.signal, 300)];
    expect(held()).toBe(1000);
    for (const leave of both) leave();
    expect(held()).toBe(0);
  });

  it("neither counts nor holds up what is little by all guesses", async () => {
    const { room, held } = roomOf(1000);
    for (let i = 0; i < 5; i++) await room.enter(never.signal, 0);
    expect(held()).toBe(0);
  });

  it("lets the next first scan in when one failed", async () => {
    const { room, held } = roomOf(1000);
    const leaves = [await room.enter(never.signal, 10), await room.enter(never.signal, 10)];
    const third = room.enter(never.signal, 10);
    for (const leave of leaves) leave();
    (await third)();
    expect(held()).toBe(0);
  });

  it("ends waiting with the query", async () => {
    const { room } = roomOf(1000);
    room.learn(5000);
    const leave = await room.enter(never.signal, 0);
    const stop = new AbortController();
    const second = room.enter(stop.signal, 0);
    stop.abort(new Error("gone"));
    leave();
    await expect(second).rejects.toThrow("gone");
  });
});

it.each([
  [10, 10 * 1024],
  [1_000_000, 50_000],
])("a scan for %s rows may find no more than its plan lets one scan find", (limit, want) => {
  const plan = { ...planOf("{app=`a`}", { limit }), scanBytes: 50_000 } as LogPlan;
  expect(guessOutcome(plan, 1e9)).toBe(want);
  expect(guessOutcome(plan, 5000)).toBe(5000);
});
