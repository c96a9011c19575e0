import { describe, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { ConnectionStarts } from "./connection-starts.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function beBusy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe("connections that begin", () => {
  it("have a turn of the event loop each, in their order", async () => {
    const starts = new ConnectionStarts();
    const begun: number[] = [];
    for (let i = 0; i < 5; i++) starts.run({}, () => begun.push(i));
    expect(begun).toEqual([0]);
    while (begun.length < 5) {
      const before = begun.length;
      await nextTurn();
      expect(begun.length - before).toBeLessThanOrEqual(1);
    }
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it("leave the event loop four times as long as they take", async () => {
    const starts = new ConnectionStarts();
    const startsMs: number[] = [];
    const busyMs = 5;
    for (let i = 0; i < 4; i++)
      starts.run({}, () => {
        startsMs.push(performance.now());
        beBusy(busyMs);
      });
    while (startsMs.length < 4) await nextTurn();
    // Timers count whole milliseconds.
    for (const [i, ms] of startsMs.slice(1).entries())
      expect(ms - (startsMs[i] as number)).toBeGreaterThanOrEqual(5 * busyMs - 2);
  });

  it("are forgotten when they are closed before", async () => {
    const starts = new ConnectionStarts();
    const begun: string[] = [];
    const closed = {};
    starts.run({}, () => begun.push("first"));
    starts.run(closed, () => begun.push("closed"));
    starts.run({}, () => begun.push("second"));
    starts.drop(closed);
    while (begun.length < 2) await nextTurn();
    expect(begun).toEqual(["first", "second"]);
  });

  it("begin at once again when none waits any more", async () => {
    const starts = new ConnectionStarts();
    for (let i = 0; i < 3; i++) starts.run({}, () => undefined);
    await until(() => {
      const connection = {};
      let isBegun = false;
      starts.run(connection, () => {
        isBegun = true;
      });
      starts.drop(connection);
      return isBegun;
    });
  });

  it("are refused when too many wait", () => {
    const starts = new ConnectionStarts();
    const taken = Array.from({ length: 300 }, () => starts.run({}, () => undefined));
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(257);
  });
});
