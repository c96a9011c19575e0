import { afterEach, describe, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { markWork, type Stretch, StretchRecorder } from "./stretches.js";

let recorder: StretchRecorder | undefined;
afterEach(() => recorder?.stop());

function record(): Stretch[] {
  const seen: Stretch[] = [];
  recorder = new StretchRecorder((stretch) => seen.push(stretch));
  recorder.start();
  return seen;
}

/** Takes CPU time; that of the process has parts of other threads, so the clock counts too. */
function block(ms: number): void {
  const before = process.cpuUsage();
  const start = performance.now();
  let used = 0;
  while (used < ms * 1000 || performance.now() - start < ms) {
    const { user, system } = process.cpuUsage(before);
    used = user + system;
  }
}

/** The longest stretch, because a busy machine makes others. */
function longest(seen: readonly Stretch[]): Stretch | undefined {
  return [...seen].sort((a, b) => b.ms - a.ms)[0];
}

describe("StretchRecorder", () => {
  it("names the work that blocked the thread, and how long", async () => {
    const seen = record();
    markWork("short", "a");
    block(5);
    markWork("long", "b", "/x?query=1");
    block(200);
    markWork("later", "c");
    block(5);
    await until(() => seen.length > 0);
    const found = longest(seen);
    expect(found).toMatchObject({ route: "long", tenant: "b", queryHash: expect.any(Number) });
    expect(found?.ms).toBeGreaterThan(100);
  });

  it("blames no request for work that none began", async () => {
    const seen = record();
    markWork("before", "a");
    block(50);
    await until(() => seen.length > 0);
    const before = seen.length;
    block(200);
    await until(() => seen.length > before);
    expect(longest(seen)).toMatchObject({ route: "other", tenant: "", queryHash: undefined });
  });

  it("has no timer while there is no work", async () => {
    const seen = record();
    expect(recorder?.isLooking).toBe(false);
    for (let times = 0; times < 2; times++) {
      markWork("soon", "a");
      expect(recorder?.isLooking).toBe(true);
      block(50);
      await until(() => recorder?.isLooking === false);
      expect(longest(seen)).toMatchObject({ route: "soon" });
      seen.length = 0;
    }
  });

  it("costs little for each mark", () => {
    record();
    const start = performance.now();
    for (let i = 0; i < 100_000; i++) markWork("a", "b");
    expect(performance.now() - start).toBeLessThan(500);
  });
});
