import { afterAll, describe, expect, it } from "@jest/globals";
import { runConcurrently } from "@skald/runtime";
import { parseSegmentKey } from "@skald/storage";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { Killer, moments, startMoments } from "./testing/kill-rounds/killer.js";
import { KnownRows } from "./testing/kill-rounds/known-rows.js";
import { findLeftovers, stepsCutShort } from "./testing/kill-rounds/leftovers.js";
import { bucketPlace, folderPlace, type Place } from "./testing/kill-rounds/place.js";
import {
  removeFolders,
  spawnServer,
  startServer,
  type TestServer,
  untilReady,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(4);
/** After this number of rounds each step must have been interrupted at least once. */
const manyRounds = 100;
/** After this number of rounds a server gets the time to clear up, and the next round starts with an empty folder. */
const roundsOfAPlace = 25;
/** A round mostly waits for one process on one processor, so that several rounds run at a time. */
const placesAtOnce = 2;
const roundMs = 30_000;
/** A busy machine needs minutes to clear what many killed processes left. */
const restMs = 240_000;
const dayMs = 86_400_000;
const steps = ["seal", "upload", "merge", "index", "delete", "drop"];
const flags = [
  "-ingester.head-target-size=64KB",
  "-ingester.chunks-idle-period=1ms",
  "-ingester.flush-check-period=20ms",
  "-ingester.chunks-retain-period=200ms",
  "-compactor.compaction-interval=50ms",
  "-compactor.retention-delete-delay=300ms",
  "-compactor.retention-enabled",
  "-store.retention=24h",
  "-compactor.delete-request-store=filesystem",
  "-compactor.delete-request-cancel-period=0s",
  "-validation.reject-old-samples=false",
  "-validation.max-entries-limit=10000000",
];

describe.each([
  ["a folder", folderPlace],
  ["a bucket", bucketPlace],
])("over %s", (_, makePlace) => {
  it(
    "kill -9 at any time of writing, sealing, uploading, merging, retention and deletion loses nothing, doubles nothing, leaves nothing behind",
    async () => {
      const caught = new Set<string>();
      const places = Array.from({ length: Math.ceil(rounds / roundsOfAPlace) }, (_, n) => n);
      const { signal } = new AbortController();
      await runConcurrently(places, placesAtOnce, signal, async (n, signal) => {
        const place = await makePlace(flags);
        const random = seededRandom(testSeed() * 1000 + n);
        const own = Math.min(rounds - n * roundsOfAPlace, roundsOfAPlace);
        await killAgainAndAgain(place, { random, caught, rounds: own, signal });
        await place.close();
      });
      const wanted = [...steps, ...moments.map(({ name }) => name)];
      if (rounds >= manyRounds) expect(wanted.filter((step) => !caught.has(step))).toEqual([]);
    },
    rounds * roundMs + 2 * restMs,
  );
});

interface Rounds {
  readonly rounds: number;
  readonly random: Random;
  /** Called with the step that the kill interrupted, and with the moment of the kill. */
  readonly caught: Set<string>;
  /** Whether another place has failed. */
  readonly signal: AbortSignal;
}

async function killAgainAndAgain(
  place: Place,
  { rounds, random, caught, signal }: Rounds,
): Promise<void> {
  const rows = new KnownRows();
  for (let round = 0; round < rounds; round++) {
    signal.throwIfAborted();
    // Some processes are killed before they are ready.
    if (random(8) === 0) await killWhileStarting(place, random);
    const server = await startServer(place.folder, place.flags);
    expect(await rows.check(server.url)).toEqual([]);
    rows.begin();
    const killer = new Killer({ place, process: server, moments, random });
    await pushUntilKilled(server, { killer, rows, random });
    if (await killer.killed) caught.add(killer.moment.name);
    for (const step of stepsCutShort(place.folder, place.store)) caught.add(step);
  }
  await rest(place, rows, rounds);
}

async function killWhileStarting(place: Place, random: Random): Promise<void> {
  const starting = spawnServer(place.folder, place.flags);
  const killer = new Killer({ place, process: starting, moments: startMoments, random });
  starting.process.stdout?.on("data", () => killer.hear({ to: "log", name: "", isGone: false }));
  const ready = untilReady(starting).catch((error: unknown) => {
    if (!killer.isOver) throw error;
  });
  await Promise.race([ready, killer.killed]);
  killer.end();
  await Promise.all([ready, killer.killed]);
}

interface Load {
  readonly killer: Killer;
  readonly rows: KnownRows;
  readonly random: Random;
}

/**
 * Pushes and deletes until the process is killed. Sometimes it waits for a flush, because the process cuts its log and drops
 * local copies only when every row is also in a segment.
 */
async function pushUntilKilled({ url }: TestServer, { killer, rows, random }: Load): Promise<void> {
  let flushed = Promise.resolve();
  const pushLines = async (word: string) => {
    await flushed;
    const texts = Array.from(
      { length: 1 + random(20) },
      () => `${word} ${"x".repeat(random(500))}`,
    );
    await rows.push(url, texts);
    killer.hear({ to: "client", name: "", isGone: false });
    if (random(20) === 0) flushed = flush(url);
  };
  const pushAll = async () => {
    while (!killer.isOver) await pushLines("public");
  };
  const deleteSome = async () => {
    for (let pushes = random(3); pushes > 0 && !killer.isOver; pushes--) await pushLines("secret");
    if (random(2) === 0 && !killer.isOver) await rows.delete(url);
    while (!killer.isOver) {
      await flushed;
      await rows.pushExpired(url, (2 + random(2)) * dayMs);
    }
  };
  await Promise.all([pushAll(), pushAll(), deleteSome()]);
}

/** Ignores the failure of a request to a process that is killed meanwhile. */
async function flush(url: string): Promise<void> {
  await fetch(`${url}/flush`, { method: "POST" }).catch(() => undefined);
}

/** Waits until a server has removed everything that it no longer needs. */
async function rest(place: Place, rows: KnownRows, rounds: number): Promise<void> {
  const server = await startServer(place.folder, place.flags);
  expect(await rows.check(server.url, rounds)).toEqual([]);
  expect((await fetch(`${server.url}/flush`, { method: "POST" })).status).toBe(204);
  let left: string[] = [];
  const isClear = () => {
    const keptFromNs = BigInt(Date.now() - dayMs) * 1_000_000n;
    const isExpired = (key: string) => (parseSegmentKey(key)?.maxNs ?? keptFromNs) < keptFromNs;
    left = [...findLeftovers(place.folder, place.store), ...place.store.keys().filter(isExpired)];
    return left.length === 0;
  };
  await waitFor(isClear, restMs).catch(() => undefined);
  expect({ left: left.length, some: left.slice(0, 20) }).toEqual({ left: 0, some: [] });
  expect(await rows.check(server.url, rounds)).toEqual([]);
  await server.kill("SIGTERM");
}
