import { afterAll, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import { nowNs, pushJson, queryLines, queryStreams } from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  spawnServer,
  startServer,
  urlOf,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(2);
const connections = 4;
const linesPerPush = 25;
const largePushes = 40;
const linesPerLargePush = 1000;
const longLine = "x".repeat(900);

it("kill -9 under load keeps every acknowledged line exactly once, however often it happens", async () => {
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

it("after kill -9 takes pushes at once, and each line is there once", async () => {
  const folder = makeFolder();
  const flags = [
    "-validation.max-entries-limit=10000000",
    "-ingester.head-target-size=1GB",
    "-distributor.ingestion-rate-limit-mb=1000",
    "-distributor.ingestion-burst-size-mb=1000",
  ];
  const startNs = BigInt(Date.now()) * 1_000_000n;
  const push = (url: string, number: number) =>
    pushJson(url, { app: "log", half: String(number % 2) }, valuesOf(number, startNs));
  const first = await startServer(folder, flags);
  for (let i = 0; i < largePushes; i++) expect(await push(first.url, i)).toBe(204);
  await first.kill("SIGKILL");

  const all = (largePushes + 2) * linesPerLargePush;
  // The server may replay its log before this process gets a turn: then it is killed, and the round is run again.
  for (let isReplaying = false; !isReplaying; ) {
    const second = spawnServer(folder, flags);
    const url = await urlOf(second);
    await waitFor(async () => (await fetch(`${url}/ready`)).ok);
    // Of these pushes two are retries of what the log has, and two are new.
    const early = [largePushes - 2, largePushes - 1, largePushes, largePushes + 1].map((number) =>
      push(url, number),
    );
    isReplaying = !second.log().includes("replayed the write-ahead log");
    expect(await Promise.all(early)).toEqual([204, 204, 204, 204]);
    expect(await count(url)).toEqual({ lines: all, different: all });
    await second.kill("SIGKILL");
  }

  const third = await startServer(folder, flags);
  expect(await count(third.url)).toEqual({ lines: all, different: all });
  await third.kill("SIGTERM");
});

it("a second process on the same folder does not start, and the next one after a kill does", async () => {
  const folder = makeFolder();
  const keepLog = ["-ingester.flush-on-shutdown=false"];
  const first = await startServer(folder, keepLog);
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(), "one"]])).toBe(204);
  const second = spawnServer(folder, keepLog);
  const code = await new Promise((resolve) => second.process.once("exit", resolve));
  expect(code).toBe(1);
  expect(second.log()).toMatch(
    new RegExp(`could not start: .*is in use by process ${first.process.pid} of \\S+ since 2`),
  );
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(1), "two"]])).toBe(204);
  expect(await queryLines(first.url, '{app="a"}')).toEqual(["one", "two"]);
  await first.kill("SIGKILL");

  const third = await startServer(folder, keepLog);
  expect(await queryLines(third.url, '{app="a"}')).toEqual(["one", "two"]);
  expect(await third.kill("SIGTERM")).toBe(0);
});

function valuesOf(push: number, startNs: bigint): (readonly [string, string])[] {
  return Array.from({ length: linesPerLargePush }, (_, i) => {
    const number = push * linesPerLargePush + i;
    return [String(startNs + BigInt(number)), `${number} ${longLine}`] as const;
  });
}

/** Counts the lines, and the different lines among them. */
async function count(url: string): Promise<{ lines: number; different: number }> {
  const streams = await queryStreams(url, '{app="log"}', { limit: "10000000" });
  const found = streams.flatMap(({ values }) => values.map(([, text]) => text));
  return { lines: found.length, different: new Set(found).size };
}
