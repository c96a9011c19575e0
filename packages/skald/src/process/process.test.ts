import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mock } from "node:test";
import { expect, it } from "@jest/globals";
import { IdleCollection } from "@skald/runtime";
import { until } from "@skald/testkit";
import { startProcess } from "../testing/start-process.js";

it("starts threads for scans and queries some time after it is ready", async () => {
  const started: unknown[] = [];
  const count = (message: unknown) => started.push(message);
  subscribe("worker_threads", count);
  const process = await startProcess([]);
  try {
    expect(started).toEqual([]);
    await until(() => started.length === 4);
  } finally {
    await process.stop();
    unsubscribe("worker_threads", count);
  }
}, 30_000);

it("collects the garbage of the main thread as long as it runs", async () => {
  const look = mock.method(IdleCollection.prototype, "look", () => undefined);
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    const process = await startProcess([]);
    mock.timers.tick(1000);
    expect(look.mock.callCount()).toBe(1);
    await process.stop();
    mock.timers.tick(60_000);
    expect(look.mock.callCount()).toBe(1);
  } finally {
    mock.timers.reset();
    look.mock.restore();
  }
}, 30_000);
