import { watch } from "node:fs";
import { afterAll, describe, expect, it } from "@jest/globals";
import { parseSegmentKey } from "@skald/storage";
import { type Random, S3Server, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { KnownRows } from "./testing/known-rows.js";
import { findLeftovers, folderStore, type SeenStore, stepsCutShort } from "./testing/leftovers.js";
import {
  makeFolder,
  removeFolders,
  spawnServer,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(4);
/** From so many rounds on each step must have been cut short. */
const manyRounds = 100;
/** After so many rounds a server is left alone until it has cleared up, and the next ones begin with nothing. */
const roundsOfAPlace = 25;
const roundMs = 30_000;
/** A busy machine takes minutes to clear what many killed processes left. */
const restMs = 240_000;
const dayMs = 86_400_000;
const steps = ["seal", "upload", "merge", "index", "delete", "drop"];
const flags = [
  "-ingester.head-target-size=64KB",
  "-ingester.chunks-idle-period=1ms",
  "-ingester.flush-check-period=20ms",
  "-compactor.compaction-interval=50ms",
  "-compactor.retention-delete-delay=300ms",
  "-compactor.retention-enabled",
  "-store.retention=24h",
  "-compactor.delete-request-store=filesystem",
  "-compactor.delete-request-cancel-period=0s",
  "-validation.reject-old-samples=false",
  "-validation.max-entries-limit=10000000",
];

/** Where segments are kept, and how a kill in the middle of what is done there is timed. */
interface Place {
  readonly folder: string;
  readonly flags: readonly string[];
  readonly store: SeenStore;
  /** Calls back at each change of the store; answers how to stop that. */
  onChange(changed: () => void): () => void;
  close(): Promise<void>;
}

async function folderPlace(): Promise<Place> {
  const folder = makeFolder();
  const onChange = (changed: () => void) => {
    const watcher = watch(folder, { recursive: true }, (event) => {
      if (event === "rename") changed();
    });
    return () => watcher.close();
  };
  return { folder, flags, store: folderStore(folder), onChange, close: async () => {} };
}

async function bucketPlace(): Promise<Place> {
  const bucket = new S3Server();
  const url = await bucket.open();
  const { host } = new URL(url);
  const read = (key: string) => bucket.object(key)?.body as Uint8Array;
  return {
    folder: makeFolder(),
    flags: [
      ...flags,
      `-s3.url=s3://${bucket.accessKeyId}:secret@${host}/${bucket.bucket}`,
      "-s3.force-path-style",
      "-s3.insecure",
    ],
    store: { keys: () => bucket.keys, read },
    onChange: (changed) => {
      bucket.faults.push({
        // Nothing fails: it only looks at what is asked.
        when: ({ method }) => {
          if (method === "PUT" || method === "DELETE") changed();
          return false;
        },
        fault: { kind: "hang" },
      });
      return () => bucket.faults.splice(0);
    },
    close: () => bucket.close(),
  };
}

describe.each([
  ["a folder", folderPlace],
  ["a bucket", bucketPlace],
])("over %s", (_, makePlace) => {
  it(
    "kill -9 at any time of writing, sealing, uploading, merging, retention and deletion loses nothing, doubles nothing, leaves nothing behind",
    async () => {
      const random = seededRandom(testSeed());
      const caught = new Set<string>();
      for (let left = rounds; left > 0; left -= roundsOfAPlace) {
        const place = await makePlace();
        await killAgainAndAgain(place, { random, caught, rounds: Math.min(left, roundsOfAPlace) });
        await place.close();
      }
      if (rounds >= manyRounds) expect(steps.filter((step) => !caught.has(step))).toEqual([]);
    },
    rounds * roundMs + 2 * restMs,
  );
});

interface Rounds {
  readonly rounds: number;
  readonly random: Random;
  /** Told what was cut short. */
  readonly caught: Set<string>;
}

async function killAgainAndAgain(place: Place, { rounds, random, caught }: Rounds): Promise<void> {
  const rows = new KnownRows();
  for (let round = 0; round < rounds; round++) {
    // Now and then it does not even come to be ready.
    if (random(8) === 0) await killWhileStarting(place, random(2500));
    const server = await startServer(place.folder, place.flags);
    expect(await rows.check(server.url)).toEqual([]);
    rows.begin();
    await loadAndKill(server, { place, rows, random });
    for (const step of stepsCutShort(place.folder, place.store)) caught.add(step);
  }
  await rest(place, rows, rounds);
}

async function killWhileStarting({ folder, flags }: Place, afterMs: number): Promise<void> {
  const starting = spawnServer(folder, flags);
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  await starting.kill("SIGKILL");
}

interface Load {
  readonly place: Place;
  readonly rows: KnownRows;
  readonly random: Random;
}

/** Pushes and deletes until the process is killed: after some time, or in the middle of some change of the store. */
async function loadAndKill(server: TestServer, { place, rows, random }: Load): Promise<void> {
  let isKilled = false;
  const killed = new Promise<void>((resolve) => {
    const kill = () => {
      if (isKilled) return;
      isKilled = true;
      stopWatching();
      clearTimeout(timer);
      resolve(server.kill("SIGKILL").then(() => undefined));
    };
    let changesLeft = 1 + random(150);
    const stopWatching = place.onChange(() => {
      if (--changesLeft <= 0) setTimeout(kill, random(4));
    });
    const timer = setTimeout(kill, 200 + random(2000));
  });
  const { url } = server;
  const pushLines = async (word: string) => {
    const texts = Array.from(
      { length: 1 + random(20) },
      () => `${word} ${"x".repeat(random(500))}`,
    );
    await rows.push(url, texts);
  };
  const pushAll = async () => {
    while (!isKilled) await pushLines("public");
  };
  const deleteSome = async () => {
    for (let pushes = random(3); pushes > 0 && !isKilled; pushes--) await pushLines("secret");
    if (random(2) === 0 && !isKilled) await rows.delete(url);
    while (!isKilled) await rows.pushExpired(url, (2 + random(2)) * dayMs);
  };
  await Promise.all([pushAll(), pushAll(), deleteSome(), killed]);
}

/** Leaves a server alone until nothing is left that should not be there. */
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
