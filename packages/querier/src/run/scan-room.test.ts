import { describe, expect, it } from "@jest/globals";
import { never } from "../testing/querier.js";
import { ScanRoom } from "./scan-room.js";

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
  return { room: new ScanRoom(budget, { maxBytes }), held: () => held };
}

describe("ScanRoom", () => {
  it("counts what scans hold by what those before have found", async () => {
    const { room, held } = roomOf(1000);
    const first = await room.enter(never.signal);
    expect(held()).toBe(0);
    room.learn(100);
    room.learn(10);
    first();
    const both = [await room.enter(never.signal), await room.enter(never.signal)];
    expect(held()).toBe(600);
    for (const leave of both) leave();
    expect(held()).toBe(0);
  });

  it("lets fewer scans run where they find much, but always one", async () => {
    const { room, held } = roomOf(1000);
    room.learn(5000);
    const leave = await room.enter(never.signal);
    let isIn = false;
    const second = room.enter(never.signal).then((done) => {
      isIn = true;
      return done;
    });
    await turn();
    expect([isIn, held()]).toEqual([false, 15_000]);
    leave();
    (await second)();
    expect([isIn, held()]).toEqual([true, 0]);
  });

  it("ends waiting with the query", async () => {
    const { room } = roomOf(1000);
    room.learn(5000);
    const leave = await room.enter(never.signal);
    const stop = new AbortController();
    const second = room.enter(stop.signal);
    stop.abort(new Error("gone"));
    leave();
    await expect(second).rejects.toThrow("gone");
  });
});
