import { afterAll, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { pushJson, queryStreams, readMetric } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(2);
const linesPerPush = 20;

it("keeps every line exactly once while segments are merged, and killed in the middle of it", async () => {
  const folder = makeFolder();
  const random = seededRandom(testSeed());
  const flags = [
    "-ingester.head-target-size=128KB",
    "-ingester.chunks-idle-period=1ms",
    "-ingester.flush-check-period=50ms",
    "-compactor.compaction-interval=100ms",
    "-compactor.retention-delete-delay=1s",
    "-validation.max-entries-limit=10000000",
  ];
  const acknowledged = new Set<string>();
  const sent = new Set<string>();
  let next = 0;
  const push = async (url: string): Promise<void> => {
    const now = BigInt(Date.now()) * 1_000_000n;
    const values = Array.from({ length: linesPerPush }, (_, i) => {
      const line = `line=${next++} ${"x".repeat(random(600))}`;
      return [String(now + BigInt(i)), line] as const;
    });
    for (const [, line] of values) sent.add(line);
    const status = await pushJson(url, { app: "load", part: String(random(5)) }, values).catch(
      () => 0,
    );
    if (status !== 204) return;
    for (const [, line] of values) acknowledged.add(line);
  };
  const check = async (url: string): Promise<void> => {
    const before = [...acknowledged];
    const streams = await queryStreams(url, '{app="load"}', { limit: "10000000" });
    const found = streams.flatMap(({ values }) => values.map(([, line]) => line));
    const unique = new Set(found);
    expect(found.length).toBe(unique.size);
    expect(before.filter((line) => !unique.has(line))).toEqual([]);
    expect([...unique].filter((line) => !sent.has(line))).toEqual([]);
  };
  for (let round = 0; round < rounds; round++) {
    const server = await startServer(folder, flags);
    const wanted = 1 + random(2);
    // The test pushes more rows only while the rows that exist lead to no merge.
    while ((await mergesOf(server.url)) < wanted) {
      for (let pushes = 0; pushes < 3; pushes++) await push(server.url);
      let polls = 0;
      await waitFor(async () => polls++ === 20 || (await mergesOf(server.url)) >= wanted);
    }
    await check(server.url);
    for (let more = random(20); more > 0; more--) await push(server.url);
    await check(server.url);
    await server.kill(round === rounds - 1 ? "SIGTERM" : "SIGKILL");
  }
  const server = await startServer(folder, flags);
  await check(server.url);
  await server.kill("SIGTERM");
});

function mergesOf(url: string): Promise<number> {
  return readMetric(url, "loki_compactor_merges_total");
}
