import { mock } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import { WorkerPool } from "@skald/runtime";
import { startProcess } from "../testing/start-process.js";

const v1 = "/loki/api/v1";

it.each([
  ["nobody asked for", [], 0],
  ["all of them", ["-frontend.query-stats-enabled"], 2],
  ["those that take longer than they may", ["-frontend.log-queries-longer-than=-1s"], 2],
  ["those of an hour and more", ["-frontend.log-queries-longer-than=1h"], 0],
])("a process logs queries, %s", async (_, flags, count) => {
  const server = await startProcess(["-auth.enabled", ...flags]);
  try {
    // The first is answered on the main thread, the second, whose text is long, on a query thread.
    for (const query of ['{app="a"}', `{app="b"} |= "${"x".repeat(10_000)}"`]) {
      const params = new URLSearchParams({ query });
      const headers = { "x-scope-orgid": "shop", "x-query-tags": "Source=panel" };
      expect((await fetch(`${server.url}${v1}/query_range?${params}`, { headers })).status).toBe(
        200,
      );
    }
    const logged = () => server.lines.filter((line) => line.includes("metrics.go"));
    while (logged().length < count) await pause(5);
    expect(logged()).toHaveLength(count);
    for (const line of logged())
      expect(JSON.parse(line)).toMatchObject({ org_id: "shop", source: "panel", status: 200 });
  } finally {
    await server.stop();
  }
});

it("a process reads new rows for tails in a lane of its own, and knows how long that took", async () => {
  const run = mock.method(WorkerPool.prototype, "run");
  const server = await startProcess(["-auth.enabled=false"]);
  try {
    const query = encodeURIComponent('{app="a"}');
    const socket = new WebSocket(`${server.url.replace("http", "ws")}${v1}/tail?query=${query}`);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    const message = new Promise((resolve) => {
      socket.onmessage = ({ data }) => String(data).includes("hello") && resolve(data);
    });
    const reading = () => run.mock.calls.find((call) => call.arguments[0] === "tail");
    // A row from before the tail is open is history, so rows come until one is read for the tail.
    for (let n = 0; reading() === undefined; n++) {
      const values = [[`${Date.now()}000000`, `hello ${n}`]];
      const body = JSON.stringify({ streams: [{ stream: { app: "a" }, values }] });
      const init = { method: "POST", body, headers: { "content-type": "application/json" } };
      expect((await fetch(`${server.url}${v1}/push`, init)).status).toBe(204);
      await pause(20);
    }
    await message;
    socket.close();
    expect(reading()?.arguments[2]).toMatchObject({ lane: "tail", share: { tenant: "fake" } });
    const work: unknown = await reading()?.result;
    expect((work as { readonly workMs: number } | undefined)?.workMs).toBeGreaterThan(0);
  } finally {
    run.mock.restore();
    await server.stop();
  }
});
