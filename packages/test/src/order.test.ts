import { afterAll, expect, it } from "@jest/globals";
import { nowNs, pushJson, queryLines, queryNumber, readMetric } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

afterAll(removeFolders);

const rounds = 9;

it("has rows of equal time in the order they came in: in heads, flushed, replayed and merged", async () => {
  const folder = makeFolder();
  const nowNs = BigInt(Date.now()) * 1_000_000n;
  const sent: string[] = [];
  let server = await startServer(folder, ["-compactor.compaction-interval=1h"]);
  const push = async (): Promise<void> => {
    const round = sent.length;
    // The later of two segments begins first.
    const before = nowNs - BigInt(round + 1) * 1_000_000_000n;
    const values = [[String(before), "before"] as const, [String(nowNs), `${round}`] as const];
    expect(await pushJson(server.url, { app: "a" }, values)).toBe(204);
    sent.push(`${round}`);
  };
  const check = async (): Promise<void> => {
    const lines = await queryLines(server.url, '{app="a"} != "before"', { direction: "forward" });
    expect(lines).toEqual(sent);
  };
  const flush = async () => {
    const { status } = await fetch(`${server.url}/flush`, { method: "POST" });
    expect(status).toBe(204);
  };
  while (sent.length < rounds) {
    await push();
    await check();
    await flush();
    await check();
  }
  await push();
  await check();
  await server.kill("SIGKILL");
  server = await startServer(folder, ["-compactor.compaction-interval=100ms"]);
  await push();
  await check();
  await waitFor(async () => (await readMetric(server.url, "loki_compactor_merges_total")) > 0);
  await check();
  await flush();
  await check();
  await server.kill("SIGTERM");
});

it("keeps all OTLP records without times, in order, replayed too", async () => {
  const folder = makeFolder();
  let server = await startServer(folder);
  const sent = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? "tick" : `${i}`));
  const recordsOf = (lines: readonly string[]) =>
    lines.map((stringValue) => ({ body: { stringValue } }));
  const scopeLogs = [
    { logRecords: recordsOf(sent.slice(0, 3)) },
    { logRecords: recordsOf(sent.slice(3, 10)) },
  ];
  const pushed = [
    [{ scopeLogs }, { scopeLogs: [{ logRecords: recordsOf(sent.slice(10, 20)) }] }],
    [{ scopeLogs: [{ logRecords: recordsOf(sent.slice(20)) }] }],
  ];
  for (const resourceLogs of pushed) {
    const response = await fetch(`${server.url}/otlp/v1/logs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ resourceLogs }),
    });
    expect(response.status).toBe(204);
  }
  const read = () => queryLines(server.url, '{service_name="unknown_service"}');
  expect(await read()).toEqual(sent);
  await server.kill("SIGKILL");
  server = await startServer(folder);
  expect(await read()).toEqual(sent);
  await server.kill("SIGTERM");
});

it("a retry whose metadata comes in another order is the same row", async () => {
  const server = await startServer(makeFolder());
  const ns = nowNs();
  const push = async (metadata: string) => {
    const body = `{"streams":[{"stream":{"app":"a"},"values":[["${ns}","line",${metadata}]]}]}`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/loki/api/v1/push`, { method: "POST", headers, body });
    expect(answer.status).toBe(204);
  };
  await push('{"trace":"1","user":"2","zone":"3"}');
  await push('{"zone":"3","trace":"1","user":"2"}');
  await push('{"zone":"4","trace":"1","user":"2"}');
  expect(await queryNumber(server.url, 'sum(count_over_time({app="a"}[1h]))')).toBe(2);
  await server.kill("SIGTERM");
});
