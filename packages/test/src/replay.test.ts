import { afterAll, expect, it } from "@jest/globals";
import { pushJson, queryStreams } from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  spawnServer,
  startServer,
  urlOf,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const pushes = 40;
const linesPerPush = 1000;
const line = "x".repeat(900);

function valuesOf(push: number, startNs: bigint): (readonly [string, string])[] {
  return Array.from({ length: linesPerPush }, (_, i) => {
    const number = push * linesPerPush + i;
    return [String(startNs + BigInt(number)), `${number} ${line}`] as const;
  });
}

/** How many lines there are, and how many different ones. */
async function count(url: string): Promise<{ lines: number; different: number }> {
  const streams = await queryStreams(url, '{app="log"}', { limit: "10000000" });
  const found = streams.flatMap(({ values }) => values.map(([, text]) => text));
  return { lines: found.length, different: new Set(found).size };
}

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
  for (let i = 0; i < pushes; i++) expect(await push(first.url, i)).toBe(204);
  await first.kill("SIGKILL");

  const all = (pushes + 2) * linesPerPush;
  // Where the log was read before this process had its turn, once more.
  for (let isReplaying = false; !isReplaying; ) {
    const second = spawnServer(folder, flags);
    const url = await urlOf(second);
    await waitFor(async () => (await fetch(`${url}/ready`)).ok);
    // Half of a retry is in the log that is still being read, half of it is new.
    const early = [pushes - 2, pushes - 1, pushes, pushes + 1].map((number) => push(url, number));
    isReplaying = !second.log().includes("replayed the write-ahead log");
    expect(await Promise.all(early)).toEqual([204, 204, 204, 204]);
    expect(await count(url)).toEqual({ lines: all, different: all });
    await second.kill("SIGKILL");
  }

  const third = await startServer(folder, flags);
  expect(await count(third.url)).toEqual({ lines: all, different: all });
  await third.kill("SIGTERM");
});
