import { afterAll, describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import { pushJson, queryStreams } from "./testing/client.js";
import { makeFolder, removeFolders, startServer } from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(2);
const connections = 4;
const linesPerPush = 25;

describe("kill -9 under load", () => {
  it("keeps every acknowledged line exactly once, however often it happens", async () => {
    const folder = makeFolder();
    const flags = ["-validation.max-entries-limit=10000000", "-ingester.head-target-size=256KB"];
    const acknowledged = new Set<string>();
    const sent = new Set<string>();
    let next = 0;
    for (let round = 0; round < rounds; round++) {
      const server = await startServer(folder, flags);
      let killed = false;
      let acks = 0;
      const pushUntilKilled = async (connection: number) => {
        while (!killed) {
          const now = BigInt(Date.now()) * 1_000_000n;
          const values = Array.from({ length: linesPerPush }, (_, i) => {
            const line = `round=${round} line=${next++} ${"x".repeat((next * 37) % 400)}`;
            return [String(now + BigInt(i)), line] as const;
          });
          for (const [, line] of values) sent.add(line);
          const status = await pushJson(
            server.url,
            { app: "load", connection: String(connection) },
            values,
          ).catch(() => 0);
          if (status !== 204) continue;
          for (const [, line] of values) acknowledged.add(line);
          acks++;
          if (acks === 40 + round * 7) {
            killed = true;
            await server.kill("SIGKILL");
          }
        }
      };
      await Promise.all(Array.from({ length: connections }, (_, i) => pushUntilKilled(i)));
    }
    const server = await startServer(folder, flags);
    const streams = await queryStreams(server.url, '{app="load"}', { limit: "10000000" });
    const found = streams.flatMap(({ values }) => values.map(([, line]) => line));
    await server.kill("SIGTERM");
    const unique = new Set(found);
    expect(found.length).toBe(unique.size);
    expect([...acknowledged].filter((line) => !unique.has(line))).toEqual([]);
    expect([...unique].filter((line) => !sent.has(line))).toEqual([]);
    expect(acknowledged.size).toBeGreaterThan(rounds * 40 * linesPerPush - 1);
  });
});
