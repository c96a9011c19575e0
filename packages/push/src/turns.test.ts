import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { runInTurns } from "./turns.js";

/** Work in steps of a millisecond; calls back at each. */
function* work(steps: number, tell: () => void): Generator<void, number> {
  for (let i = 0; i < steps; i++) {
    const end = performance.now() + 1;
    while (performance.now() < end);
    tell();
    yield;
  }
  return steps;
}

describe("runInTurns", () => {
  it("gives up the thread every few milliseconds, however many works there are", async () => {
    let isOver = false;
    const works = Array.from({ length: 20 }, (_, i) =>
      runInTurns(
        work(10, () => undefined),
        { queue: `${i % 2}` },
      ),
    );
    void Promise.all(works).finally(() => {
      isOver = true;
    });
    let steps = 0;
    while (!isOver) {
      await nextTurn();
      steps++;
    }
    // 180 ms in stretches of about 4.
    expect(steps).toBeGreaterThan(30);
    expect(await Promise.all(works)).toEqual(works.map(() => 10));
  });

  it("lets queues take turns", async () => {
    const many = Array.from({ length: 30 }, () =>
      runInTurns(
        work(10, () => undefined),
        { queue: "many" },
      ),
    );
    let ended = 0;
    for (const one of many) void Promise.resolve(one).then(() => ended++);
    await runInTurns(
      work(10, () => undefined),
      { queue: "one" },
    );
    expect(ended).toBeLessThan(5);
    await Promise.all(many);
  });

  it("goes on with what was begun before it begins other work", async () => {
    const steps = [0, 0, 0, 0, 0, 0];
    const store = async (i: number) => {
      const begin = work(10, () => steps[i]!++);
      await runInTurns(begin, { queue: "a" });
      const rest = work(10, () => undefined);
      await runInTurns(rest, { queue: "a", goesOn: true });
    };
    const all = steps.map((_, i) => store(i));
    await all[0];
    // Each takes its first step at once. One more may begin before it is known that the first goes on.
    expect(steps.filter((count) => count > 1).length).toBeLessThan(3);
    await Promise.all(all);
  });

  it.each([true, false])("keeps the order of works that come in: go on %s", async (goesOn) => {
    const done: number[] = [];
    const works = [0, 1, 2, 3].map(async (i) => {
      const one = work(3, () => undefined);
      await runInTurns(one, { queue: "a", goesOn });
      done.push(i);
    });
    await Promise.all(works);
    expect(done).toEqual([0, 1, 2, 3]);
  });

  it("ends work that nobody waits for", async () => {
    let steps = 0;
    const isGone = () => steps >= 3;
    const gone = Promise.resolve(
      runInTurns(
        work(10, () => steps++),
        { queue: "a", isGone },
      ),
    );
    expect(await gone.catch(errorCodeOf)).toBe("cancelled");
    expect(steps).toBe(3);
  });

  it("rejects with the error of a step", async () => {
    function* broken(): Generator<void, number> {
      yield;
      throw new RangeError("broken");
    }
    await expect(runInTurns(broken(), { queue: "a" })).rejects.toThrow("broken");
  });

  it("returns the result of short work at once", () => {
    expect(
      runInTurns(
        work(0, () => undefined),
        { queue: "a" },
      ),
    ).toBe(0);
  });
});
