import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  decodeOutcome,
  decodeStreams,
  decodeTexts,
  type LabelTask,
  labelSetsOf,
  type ScanOutcome,
  type ScanPlan,
  type ScanTask,
  streamCountOf,
} from "@skald/contracts";
import type { LogPlan } from "@skald/logql";
import { errorCodeOf, type SegmentRef, unavailable } from "@skald/model";
import type { JobContext, JobHandler } from "@skald/runtime";
import {
  corruptSegmentOf,
  type LocalRef,
  MemoryStore,
  type ObjectRange,
  SegmentCache,
} from "@skald/storage";
import { seededRandom } from "@skald/testkit";
import { scanJobs } from "../jobs.js";
import { ScanPool } from "../pool.js";
import { leafOf, logPlan, rowsOf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { RemoteScanner } from "./remote-scanner.js";

const { path: directory, remove } = makeDirectory();
afterAll(remove);

const { signal } = new AbortController();
const share = { tenant: "t", actors: [], cost: 0 };
const options = { signal, share };
const range = { fromNs: 0n, toNs: 1n << 62n };
const store = new MemoryStore();
/** Segments as files and as objects of the store. */
let files: SegmentRef[];
let objects: SegmentRef[];
let reads: (ObjectRange & { readonly key: string })[];
let isDown = false;
const disk = { freeBytes: 1e9, totalBytes: 1e10 };

/** Lines that do not get smaller when they are compressed, so that segments have many slots. */
function makeRows(seed: number, count: number) {
  const random = seededRandom(seed);
  const word = () => random(2 ** 32).toString(36);
  return Array.from({ length: count }, (_, i) => {
    const noise = Array.from({ length: 60 }, word).join("");
    return row(
      `app${i % 3}`,
      seed * 1000 + i,
      `${i % 1000 === 0 ? "needle" : "hay"} ${i} ${noise}`,
      {
        trace: word(),
      },
    );
  });
}

beforeAll(async () => {
  const rows = [makeRows(1, 12_000), makeRows(2, 9_000)] as const;
  // The third has rows of the first.
  const all = [...rows, rows[0].slice(0, 500)];
  files = all.map((part, i) => makeSegment(directory, part, { id: `s${i}`, rowsPerBlock: 400 }));
  objects = await Promise.all(
    files.map(async (ref): Promise<SegmentRef> => {
      const path = ref.location.kind === "file" ? ref.location.path : "";
      await store.putFile(ref.id, path, { signal });
      return { ...ref, location: { kind: "object", key: ref.id } };
    }),
  );
});
beforeEach(() => {
  reads = [];
  isDown = false;
  disk.freeBytes = 1e9;
});

/** The jobs of a thread, in this one. */
function poolOf() {
  const jobs = scanJobs() as Record<
    string,
    (payload: unknown, context: JobContext) => ReturnType<JobHandler>
  >;
  const context = { check: () => {}, signal } as Partial<JobContext> as JobContext;
  const runs: string[] = [];
  const payloads: unknown[] = [];
  const run = async (name: string, payload: unknown) => {
    runs.push(name);
    payloads.push(payload);
    const { value } = await (jobs[name] as NonNullable<(typeof jobs)[string]>)(payload, context);
    return value;
  };
  const broadcast = (name: string, payload: unknown) => void run(name, payload);
  /** Whether the first source of each job of labels came with its index. */
  const images = () =>
    payloads.flatMap((payload, i) =>
      runs[i] === "labels" ? ["image" in (payload as LabelTask<LocalRef>).sources[0]!] : [],
    );
  return { runs, images, pool: new ScanPool({ run, broadcast } as never) };
}

let caches = 0;

function setUp({ maxBytes = 1e9, name = `cache-${caches++}` } = {}) {
  const { pool, runs, images } = poolOf();
  const cache = new SegmentCache({
    directory: join(directory, name),
    storeName: "memory",
    disk: async () => disk,
    maxBytes,
    onDropped: (path) => pool.forget(path),
    store: {
      getRange: async (key, asked, call) => {
        reads.push({ key, ...asked });
        if (isDown) throw unavailable("the store is down");
        return store.getRange(key, asked, call);
      },
    },
  });
  return { cache, pool, runs, images, name, scanner: new RemoteScanner({ scanner: pool, cache }) };
}

const taskOf = <Plan extends ScanPlan>(plan: Plan, refs: readonly LocalRef[]) =>
  ({ plan, sources: refs.map((ref, sequence) => ({ ref, sequence })) }) satisfies ScanTask<
    Plan,
    LocalRef
  >;

const plans: [string, ScanPlan][] = [
  ["the newest rows", logPlan("{app=~`.+`}", { limit: 20, direction: "backward" })],
  ["the oldest rows", logPlan("{app=`app1`}", { limit: 2000 })],
  ["rows with a word", logPlan("{app=~`.+`} |= `needle`", { limit: 1000 })],
  ["few rows with a word", logPlan("{app=~`.+`} |= `needle`", { limit: 3, direction: "backward" })],
  ["metadata", logPlan("{app=~`.+`} | trace=~`a.+`", { limit: 50 })],
  [
    "a count by headers",
    leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", { from: 1e9, to: 1e9 }),
  ],
  [
    "a count of lines",
    leafOf("sum(count_over_time({app=~`.+`} |= `needle` [1s]))", { from: 1e9, to: 1e9 }),
  ],
];

function withoutCache({ stats, ...outcome }: ScanOutcome<ScanPlan>) {
  const {
    fetchedRanges,
    fetchedPages,
    fetchedBytes,
    cachedPages,
    cachedBytes,
    downloadNs,
    ...rest
  } = stats;
  return { ...outcome, stats: rest };
}

describe("a scan of the store", () => {
  it.each(plans)("finds what one of files does: %s", async (_, plan) => {
    const { scanner, pool, cache } = setUp();
    await cache.open();
    const local = decodeOutcome(await pool.scan(taskOf(plan, files), options));
    for (const round of ["cold", "warm"]) {
      const found = decodeOutcome(await scanner.scan(taskOf(plan, objects), options));
      expect(withoutCache(found)).toEqual(withoutCache(local));
      const fetched = reads.reduce((sum, { length }) => sum + length, 0);
      const { fetchedRanges, fetchedBytes, cachedPages } = found.stats;
      const want = round === "cold" ? [reads.length, fetched] : [0, 0];
      expect([fetchedRanges, fetchedBytes]).toEqual(want);
      if (round === "warm") expect(cachedPages + Number("leaf" in plan)).toBeGreaterThanOrEqual(0);
      reads = [];
    }
  });

  it("reads as little as it needs, in few requests", async () => {
    const sizes = objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    expect(sizes).toBeGreaterThan(5_000_000);
    const read = async (plan: ScanPlan) => {
      reads = [];
      const { scanner, cache, runs } = setUp();
      await cache.open();
      await scanner.scan(taskOf(plan, objects), options);
      const share = reads.reduce((sum, { length }) => sum + length, 0) / sizes;
      return { share, requests: reads.length, runs: runs.length };
    };
    const [newest, , words, , , headers] = plans.map(([, plan]) => plan) as [
      ScanPlan,
      ...ScanPlan[],
    ];
    const byHeaders = await read(headers as ScanPlan);
    expect(byHeaders).toMatchObject({ requests: 3, runs: 1 });
    expect(byHeaders.share).toBeLessThan(0.06);
    const byTimes = await read(newest);
    expect(byTimes.share).toBeLessThan(0.5);
    expect(byTimes.runs).toBeLessThan(8);
    const whole = await read(words as ScanPlan);
    expect(whole.share).toBeLessThanOrEqual(1.05);
    expect(whole.runs).toBeLessThan(6);
    expect(whole.requests).toBeLessThan(12);
  });

  it("measures, and finds streams, from indexes alone", async () => {
    const { scanner, pool, cache } = setUp();
    await cache.open();
    const plan = plans[2]?.[1] as LogPlan;
    const bytes = await scanner.measure(taskOf(plan, objects), options);
    expect(bytes).toBe(await pool.measure(taskOf(plan, files), options));
    const searched = reads.length;
    const task = { sources: objects, selectors: [], ...range };
    const streams = decodeStreams(await scanner.streams(task, options));
    expect(labelSetsOf(streams).map(({ values }) => values.join())).toEqual(
      expect.arrayContaining(["app0", "app1", "app2"]),
    );
    expect(streamCountOf(streams)).toBe(3);
    const labels = await scanner.labels({ ...task, label: "app" }, options);
    expect(decodeTexts(labels)).toEqual(["app0", "app1", "app2"]);
    // The ends of three objects, and their filters.
    expect(searched).toBeLessThanOrEqual(6);
    expect(reads).toHaveLength(searched);
  });

  it("asks filters before it fetches what they refuse", async () => {
    const { scanner, pool, cache, runs } = setUp();
    await cache.open();
    const plan = logPlan("{app=~`.+`} |= `not a single line has words like these ones`", {
      limit: 10,
    });
    const local = decodeOutcome(await pool.scan(taskOf(plan, files), options));
    expect(local.stats.refusedBlocks).toBeGreaterThan(0);
    runs.length = 0;
    const found = decodeOutcome(await scanner.scan(taskOf(plan, objects), options));
    expect(withoutCache(found)).toEqual(withoutCache(local));
    expect(found.stats.decompressedLines).toBe(0);
    expect(runs.length).toBeLessThanOrEqual(2);
    const sizes = objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    expect(reads.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(sizes / 3);
  });

  it("decodes the index of many streams once for all threads, and forgets it with the file", async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => row(`app${i}`, i, `line ${i}`));
    const file = makeSegment(directory, rows, { id: "many" });
    await store.putFile("many", file.location.kind === "file" ? file.location.path : "", {
      signal,
    });
    const ref: SegmentRef = { ...file, location: { kind: "object", key: "many" } };
    const { scanner, cache, images } = setUp();
    await cache.open();
    const task = { sources: [ref], selectors: [], ...range, label: "app" };
    const find = async () => decodeTexts(await scanner.labels(task, options)).length;
    expect([await find(), await find()]).toEqual([5000, 5000]);
    expect(images()).toEqual([false, true]);
    await cache.drop("many");
    expect([await find(), await find()]).toEqual([5000, 5000]);
    expect(images()).toEqual([false, true, false, true]);
  });

  it("finds duplicates", async () => {
    const { scanner, cache } = setUp();
    await cache.open();
    const [first, second, again] = objects as [SegmentRef, SegmentRef, SegmentRef];
    const mask = await scanner.duplicates({ newer: again, older: [second, first] }, options);
    expect(mask.rows.reduce((sum, { length }) => sum + length, 0)).toBe(500);
  });

  it("finds the rows of filters, each filter once", async () => {
    const { scanner, cache, runs } = setUp();
    await cache.open();
    const source = objects[0] as SegmentRef;
    const filterOf = (id: string, query: string) => {
      const { log, nowNs } = logPlan(query);
      return { id, log, nowNs, ...range };
    };
    const none = filterOf("1", "{app=~`.+`} |= `no such text at all`");
    const all = filterOf("2", "{app=~`.+`} != `no such text at all`");
    const find = async (...filters: (typeof none)[]) => {
      const { mask, rowCount } = await scanner.matches({ source, filters }, options);
      return mask.rows.reduce((sum, { length }) => sum + length, 0) / rowCount;
    };
    expect([await find(none), await find(all), await find(none, all)]).toEqual([0, 1, 1]);
    const before = runs.length;
    expect([await find(none), await find(none, all)]).toEqual([0, 1]);
    expect(runs.length).toBe(before);
  });
});

describe("the cache", () => {
  const plan = plans[2]?.[1] as LogPlan;
  const scan = async ({ scanner }: ReturnType<typeof setUp>) => {
    const { partial } = decodeOutcome<LogPlan>(await scanner.scan(taskOf(plan, objects), options));
    return rowsOf(plan, [partial]).length;
  };
  const found = 21 + 1;
  const filesOf = (name: string) =>
    readdirSync(join(directory, name)).map((file) => join(directory, name, file));

  it("outlives the process", async () => {
    const first = setUp();
    await first.cache.open();
    expect(await scan(first)).toBe(found);
    await first.cache.close();
    reads = [];
    const second = setUp({ name: first.name });
    await second.cache.open();
    expect(second.cache.bytes).toBe(first.cache.bytes);
    expect(await scan(second)).toBe(found);
    expect(reads).toEqual([]);
    // What is no file of it goes, and what is of another size.
    truncateSync(filesOf(first.name)[0] as string, 65_537 * 3);
    writeFileSync(join(directory, first.name, `${"0".repeat(32)}-${"0".repeat(12)}.slots`), "torn");
    const third = setUp({ name: first.name });
    await third.cache.open();
    expect(await scan(third)).toBe(found);
    expect(filesOf(first.name)).toHaveLength(3);
    expect(third.cache.bytes).toBe(first.cache.bytes);
  });

  it("fetches again what the disk did not keep", async () => {
    const first = setUp();
    await first.cache.open();
    await scan(first);
    await first.cache.close();
    for (const path of filesOf(first.name)) {
      const bytes = readFileSync(path);
      const slots = bytes.byteLength / 65_537;
      // All but the index and the bytes that say what is there.
      bytes.fill(0, 0, (slots - 3) * 65_536);
      writeFileSync(path, bytes);
    }
    reads = [];
    const second = setUp({ name: first.name });
    await second.cache.open();
    expect(await scan(second)).toBe(found);
    expect(reads.length).toBeGreaterThan(0);
  });

  it("names the object when the store's copy is damaged", async () => {
    const [object] = objects as [SegmentRef];
    const body = await store.get(object.id, { signal });
    const bad: SegmentRef = { ...object, id: "bad", location: { kind: "object", key: "bad" } };
    await store.put("bad", Buffer.from(body).fill(0, 0, body.byteLength >> 1), { signal });
    const { scanner, cache } = setUp();
    await cache.open();
    const failure = await scanner
      .scan(taskOf(plan, [bad]), options)
      .catch((error: unknown) => error);
    expect(corruptSegmentOf(failure)).toBe("bad");
  });

  it("holds no more than it may, but what is in use", async () => {
    const small = setUp({ maxBytes: 1_000_000 });
    await small.cache.open();
    expect(await scan(small)).toBe(found);
    expect(await scan(small)).toBe(found);
    await small.cache.close();
    expect(small.cache.bytes).toBeLessThanOrEqual(1_000_000);
    const held = filesOf(small.name).reduce((sum, path) => sum + statSync(path).blocks * 512, 0);
    expect(held).toBeLessThan(1_100_000);
  });

  it("leaves a part of the disk to others", async () => {
    const setup = setUp();
    await setup.cache.open();
    expect(await scan(setup)).toBe(found);
    const before = setup.cache.bytes;
    expect(before).toBeGreaterThan(3_000_000);
    disk.freeBytes = 4e8;
    const [first] = objects as [SegmentRef];
    await setup.cache.drop(first.id);
    // Without a filter: its index alone.
    await setup.scanner.measure(taskOf(plans[1]![1], [first]), options);
    // But for what was in use.
    expect(setup.cache.bytes).toBeLessThanOrEqual(2 * 65_536);
    expect(await scan(setup)).toBe(found);
  });

  it("fails with the store's error, and goes on later", async () => {
    const setup = setUp();
    await setup.cache.open();
    isDown = true;
    const failure = await scan(setup).catch((error: unknown) => error);
    expect(errorCodeOf(failure)).toBe("unavailable");
    isDown = false;
    expect(await scan(setup)).toBe(found);
    isDown = true;
    expect(await scan(setup)).toBe(found);
  });

  it("fetches for several queries once, and stops when nobody waits", async () => {
    const setup = setUp();
    await setup.cache.open();
    const abort = new AbortController();
    const gone = setup.scanner.scan(taskOf(plan, objects), { share, signal: abort.signal });
    const others = [scan(setup), scan(setup)];
    abort.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    expect(await Promise.all(others)).toEqual([found, found]);
    const places = reads.map(({ key, offset }) => `${key} ${offset}`);
    expect(new Set(places).size).toBe(places.length);
  });
});
