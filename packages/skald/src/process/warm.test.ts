import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, it } from "@jest/globals";
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
