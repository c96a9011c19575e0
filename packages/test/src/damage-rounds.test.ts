import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { nowNs, pushJson, type QueryAnswer, readMetric } from "./testing/client.js";
import {
  filesBelow,
  makeFolder,
  removeFolders,
  spawnServer,
  startServer,
  urlOf,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const rounds = testRuns(3);
const flags = [
  "-ingester.head-target-size=16KB",
  "-ingester.chunks-idle-period=1ms",
  "-ingester.flush-check-period=20ms",
  "-ingester.flush-on-shutdown=false",
  "-compactor.compaction-interval=100ms",
  "-compactor.retention-enabled",
  "-compactor.delete-request-store=filesystem",
];
/** No head is sealed and nothing is merged, so that queries find the damage. */
const keepHeads = [
  ...flags,
  "-ingester.chunks-idle-period=1h",
  "-compactor.compaction-interval=1h",
];

/** Every kind of file that a process and its store keep. */
const kinds: Readonly<Record<string, RegExp>> = {
  "the log": /^wal\/.*\.wal$/,
  "a local segment": /^ingester\/segments\/.*\.parquet$/,
  "the mark of an upload": /\.uploaded$/,
  "a segment of the store": /^chunks\/tenant=.*\.parquet$/,
  "a day index": /^chunks\/tenant=.*\.day$/,
  "a delete request": /^chunks\/index\/delete_requests\/.*\.json$/,
  "the copy of delete requests": /^compactor\/delete-requests\.json$/,
  "the mark of the store": /^chunks\/\.skald-store$/,
  "what is remembered of the store": /^store\.json$/,
};

const folder = makeFolder();
const whole = makeFolder();
const carriedOut = makeFolder();
/** The time of each line. */
const pushed = new Map<string, string>();
const secrets = ["secret 1", "secret 2"];

async function push(url: string, lines: readonly string[]): Promise<void> {
  const values = lines.map((line) => [nowNs(pushed.size), line] as const);
  for (const [time, line] of values) pushed.set(line, time);
  expect(await pushJson(url, { app: "a" }, values)).toBe(204);
}

/** Kills a process that has files of every kind, and copies its folder to `whole`. */
beforeAll(async () => {
  const first = await startServer(folder, flags);
  const rows = (part: number) =>
    Array.from({ length: 300 }, (_, i) => `line ${part} ${i} ${"x".repeat((i * 7) % 100)}`);
  for (let part = 0; part < 3; part++) {
    await push(first.url, rows(part));
    expect((await fetch(`${first.url}/flush`, { method: "POST" })).status).toBe(204);
  }
  await waitFor(() => filesBelow(folder, ".day").length > 0);
  expect(await first.kill("SIGTERM")).toBe(0);
  const second = await startServer(folder, keepHeads);
  await push(second.url, [...rows(3), ...secrets]);
  const params = {
    query: '{app="a"} |= "secret"',
    start: String(Math.floor(Date.now() / 1000) - 3600),
  };
  const asked = `${second.url}/loki/api/v1/delete?${new URLSearchParams(params)}`;
  expect((await fetch(asked, { method: "POST" })).status).toBe(204);
  for (const secret of secrets) pushed.delete(secret);
  await second.kill("SIGKILL");
  cpSync(folder, whole, { recursive: true });
});

/** The same folder later: the newest index has no rows of the delete request, and the store still has the segments with them. */
beforeAll(async () => {
  const { url, kill } = await startServer(folder, [
    ...flags,
    "-compactor.delete-request-cancel-period=0s",
    "-ingester.chunks-retain-period=0s",
  ]);
  const metric = (name: string) => readMetric(url, `loki_${name}`);
  await waitFor(async () => (await metric("compactor_deleted_lines")) === secrets.length);
  await waitFor(() => filesBelow(join(folder, "ingester"), ".parquet").length === 0);
  const runs = "boltdb_shipper_compact_tables_operation_total";
  const before = await metric(runs);
  await waitFor(async () => (await metric(runs)) > before + 5);
  await kill("SIGKILL");
  cpSync(folder, carriedOut, { recursive: true });
});

function damage(path: string, random: Random): string {
  const bytes = readFileSync(path);
  const at = random(bytes.length);
  const isFlip = random(2) === 0 && bytes.length > 0;
  if (isFlip) bytes[at] = (bytes[at] as number) ^ (1 << random(8));
  rmSync(path);
  writeFileSync(path, isFlip ? bytes : bytes.subarray(0, at));
  return `${isFlip ? "a bit of" : "cut off at"} byte ${at} of ${bytes.length}`;
}

/** Describes what is wrong with the answers from a folder; empty when they are right. */
async function wrongOf(mayLack: (counts: Counts) => boolean): Promise<string[]> {
  const server = spawnServer(folder, keepHeads);
  const url = await urlOf(server);
  let unready = "";
  await waitFor(async () => {
    const response = await fetch(`${url}/ready`);
    unready = response.ok ? "" : await response.text();
    return response.ok || /another object store/.test(unready);
  });
  if (unready !== "") {
    await server.kill("SIGKILL");
    return [];
  }
  const params = new URLSearchParams({ query: '{app="a"}', limit: "5000", since: "1h" });
  let status = 0;
  let text = "";
  await waitFor(async () => {
    const response = await fetch(`${url}/loki/api/v1/query_range?${params}`);
    ({ status } = response);
    text = await response.text();
    return status !== 503 || !text.endsWith("is damaged; compaction writes it anew");
  });
  const wrong: string[] = [];
  if (status === 200) {
    const { data, warnings = [] } = JSON.parse(text) as QueryAnswer;
    const streams = data.result as readonly { values: [string, string][] }[];
    const found = streams.flatMap(({ values }) => values);
    const lines = new Set(found.map(([, line]) => line));
    if (lines.size !== found.length) wrong.push("rows twice");
    if (found.some(([time, line]) => pushed.get(line) !== time)) wrong.push("rows from nowhere");
    const lost = await readMetric(url, "loki_ingester_wal_corruptions_total");
    if (lines.size < pushed.size && !mayLack({ warnings: warnings.length, lost }))
      wrong.push(`${pushed.size - lines.size} rows lost`);
  } else if (!/another object store/.test(text)) wrong.push(`${status} ${text}`);
  await server.kill("SIGKILL");
  return wrong;
}

interface Counts {
  readonly warnings: number;
  /** How many places of the log are damaged. */
  readonly lost: number;
}

function restore(from = whole): void {
  rmSync(folder, { recursive: true });
  cpSync(from, folder, { recursive: true });
}

describe("a bit turned over, or the end cut off, of", () => {
  it.each(Object.entries(kinds))(
    "%s gives no wrong row, and loses none untold",
    async (_, kind) => {
      const random = seededRandom(testSeed());
      for (let round = 0; round < rounds; round++) {
        restore();
        const files = filesBelow(folder, "").filter((path) => kind.test(path));
        const file = files[random(files.length)] as string;
        const how = damage(join(folder, file), random);
        // Only the log has no copy elsewhere.
        const wrong = await wrongOf(({ lost }) => kind === kinds["the log"] && lost > 0);
        expect({ file, how, wrong }).toEqual({ file, how, wrong: [] });
      }
    },
  );

  it("any generations of a day index brings no deleted row back", async () => {
    const random = seededRandom(testSeed());
    for (let round = 0; round < rounds; round++) {
      restore(carriedOut);
      const indexes = filesBelow(folder, ".day");
      const oldest = random(indexes.length);
      const damaged = indexes.filter((_, i) => i === oldest || (i > oldest && random(4) > 0));
      const how = damaged.map((file) => `${file}: ${damage(join(folder, file), random)}`);
      const wrong = await wrongOf(() => false);
      expect({ how, wrong }).toEqual({ how, wrong: [] });
    }
  });

  it("the only copy of a segment leaves its rows out, which the answer tells", async () => {
    const random = seededRandom(testSeed());
    for (let round = 0; round < rounds; round++) {
      restore();
      rmSync(join(folder, "ingester"), { recursive: true });
      const files = filesBelow(folder, ".parquet");
      const file = files[random(files.length)] as string;
      const how = damage(join(folder, file), random);
      const wrong = await wrongOf(({ warnings }) => warnings > 0);
      expect({ file, how, wrong }).toEqual({ file, how, wrong: [] });
    }
  });
});
