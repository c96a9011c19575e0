import { afterAll, describe, expect, it } from "@jest/globals";
import { errorCodeOf, formatLabels, type SegmentRef, unavailable } from "@skald/model";
import {
  makeDirectory,
  makeHead,
  makeSegment,
  row,
  type SourceRow,
  testDayNs,
} from "@skald/scan/testing";
import type { LocalRef } from "@skald/storage";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import type { Querier } from "../querier.js";
import { LocalScanner } from "../testing/local-scanner.js";
import { plain } from "../testing/plain.js";
import { type HeldReplica, querierOf, replicatedQuerierOf } from "../testing/querier.js";
import { never, noLimits, planOf } from "../testing/requests.js";

const directory = makeDirectory();
afterAll(directory.remove);

const ms = 1_000_000;
const minute = 60_000;
let made = 0;

/** A row, and what became of it on each of three ingesters: absent, in a head, in a segment here, or in the store, or both. */
const states = ["lost", "head", "local", "stored", "both"] as const;
type State = (typeof states)[number];

interface Replicated {
  readonly row: SourceRow;
  readonly states: readonly State[];
}

const replicated: fc.Arbitrary<Replicated[]> = fc
  .record({
    app: fc.constantFrom("a", "b"),
    // Beside the ends of what is compared at a time.
    time: fc
      .tuple(
        fc.constantFrom(0, 0, 8 * minute, 58 * minute),
        fc.integer({ min: 0, max: 3 * minute }),
      )
      .map(([from, more]) => from + more),
    count: fc.constantFrom(1, 1, 2, 40),
    line: fc.constantFrom("", "x=1", "x=22 hit", "hit"),
    trace: fc.constantFrom("", "1"),
    states: fc.array(fc.constantFrom(...states), { minLength: 3, maxLength: 3 }),
    lost: fc.option(fc.integer({ min: 0, max: 2 })),
  })
  .map(({ app, time, count, line, trace, states: own, lost }) => {
    // A quorum has taken each row.
    const kept = own.map((state, i) => (state === "lost" && i !== lost ? "head" : state));
    return Array.from({ length: count }, (_, i) => ({
      row: row(app, (time + i) * ms, line, { trace }),
      states: kept.map((state, at) => (at === lost ? "lost" : state)),
    }));
  });

const query = fc.constantFrom(
  "{app=~`.+`}",
  "{app=~`a|b`} |= `hit`",
  "{app=`a`} | trace=`1`",
  "sum by (app) (count_over_time({app=~`.+`}[1d]))",
  "sum by (app) (count_over_time({app=~`.+`}[90s]))",
  "sum by (trace) (rate({app=~`.+`} |= `hit` [1d]))",
  "max by (app) (max_over_time({app=~`.+`} | logfmt | unwrap x [2d]))",
  "sum(bytes_over_time({app=`b`}[2m])) / sum(count_over_time({app=~`.+`}[1d]))",
);
const params = fc.record({
  from: fc.constantFrom(0, 30_500 * ms, minute * ms),
  to: fc.constantFrom(90_250 * ms, 4 * minute * ms, 90 * minute * ms, 90 * minute * ms),
  direction: fc.constantFrom("forward" as const, "backward" as const),
});

function keyOf({ labels, ns, line, metadata }: SourceRow): string {
  return JSON.stringify([labels, String(ns), line, metadata]);
}

function distinct(rows: readonly SourceRow[]): SourceRow[] {
  return [...new Map(rows.map((one) => [keyOf(one), one])).values()];
}

function segment(rows: readonly SourceRow[]): SegmentRef {
  return makeSegment(directory.path, rows, { id: `${made++}`, rowsPerBlock: 7 });
}

/** What ingesters and store have; of a row that came twice the first state counts. */
function place(rows: readonly Replicated[]) {
  const first = new Map<string, Replicated>();
  for (const one of rows) if (!first.has(keyOf(one.row))) first.set(keyOf(one.row), one);
  const store: SegmentRef[] = [];
  const replicas = [0, 1, 2].map((at): LocalRef[] => {
    const of = (state: State) =>
      [...first.values()].filter((one) => one.states[at] === state).map((one) => one.row);
    const [head, local, stored, both] = [of("head"), of("local"), of("stored"), of("both")];
    const held: LocalRef[] = [];
    if (head.length > 0) held.push(makeHead(head, { id: `${made++}`, rowsPerBlock: 5 }));
    if (local.length > 0) held.push(segment(local));
    if (stored.length > 0) store.push(segment(stored));
    if (both.length > 0) {
      const ref = segment(both);
      held.push(ref);
      store.push(ref);
    }
    return held;
  });
  return { store, replicas };
}

const sorted = (answer: unknown) => (Array.isArray(answer) ? [...answer].sort() : answer);

async function wanted(rows: readonly Replicated[], text: string, asked: object) {
  const scans = new LocalScanner(2);
  try {
    const all = distinct(rows.map((one) => one.row));
    const querier = querierOf(scans, { ingester: all.length > 0 ? [segment(all)] : [] });
    const plan = planOf(text, asked);
    return sorted(
      plain(await querier.run("query", { tenants: ["t"], plan, limits: noLimits }, never)),
    );
  } finally {
    scans.close();
  }
}

async function answered(
  replicas: readonly HeldReplica[],
  store: SegmentRef[],
  text: string,
  asked: object,
) {
  const scans = new LocalScanner(2);
  try {
    const querier = replicatedQuerierOf(scans, { replicas, store });
    const plan = planOf(text, asked);
    return sorted(
      plain(await querier.run("query", { tenants: ["t"], plan, limits: noLimits }, never)),
    );
  } finally {
    scans.close();
  }
}

describe("rows on several ingesters and in the store", () => {
  it("count once, whatever each of them has lost, sealed or stored", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(replicated, { maxLength: 12 }), query, params, async (...made) => {
        const [groups, text, asked] = made;
        const rows = groups.flat();
        const { replicas, store } = place(rows);
        const held = replicas.map((sources) => ({ sources }));
        expect(await answered(held, store, text, asked)).toEqual(await wanted(rows, text, asked));
      }),
      { numRuns: testRuns(100) },
    );
  });

  it("count although one ingester is lost, at the start or in the middle of a query", async () => {
    const lost = fc.record({ at: fc.integer({ min: 0, max: 2 }), calls: fc.integer({ max: 6 }) });
    const all = fc.array(replicated, { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(all, query, params, lost, async (groups, text, asked, { at, calls }) => {
        const rows = groups.flat().map((one) => ({
          ...one,
          // Who is lost has no row that is nowhere else.
          states: one.states.map((state) => (state === "lost" ? "head" : state)),
        }));
        const { replicas, store } = place(rows);
        let left = calls;
        const fail = () => {
          if (left-- <= 0) throw unavailable("connection refused");
        };
        const held = replicas.map((sources, i) => (i === at ? { sources, fail } : { sources }));
        expect(await answered(held, store, text, asked)).toEqual(await wanted(rows, text, asked));
      }),
      { numRuns: testRuns(40) },
    );
  });
});

/** Rows and bytes of each stream and bucket, and the number of streams. */
async function volumesOf(querierOn: (scans: LocalScanner) => Querier, stepMs: number) {
  const scans = new LocalScanner(2);
  const toNs = testDayNs + BigInt(90 * minute * ms);
  const buckets = { firstNs: testDayNs, stepNs: BigInt(stepMs * ms), count: 90 };
  try {
    const { groups, group, bucket, rows, bytes, streamCount } = await querierOn(scans).run(
      "volumes",
      {
        ...{ tenants: ["t"], matchers: [{ name: "app", op: "=~", value: ".+" }] },
        ...{ groupBy: { kind: "series", names: ["app"] }, buckets, maxGroups: 10 },
        ...{ countsStreams: true, fromNs: testDayNs, toNs },
      },
      never,
    );
    const cells = Array.from(group, (one, i) =>
      [formatLabels(groups[one]!), bucket[i], rows[i], bytes[i]!.toFixed(3)].join(" "),
    );
    return { cells: cells.sort(), streamCount };
  } finally {
    scans.close();
  }
}

describe("volumes of rows on several ingesters and in the store", () => {
  const same = (one: Replicated) => ({
    ...one,
    row: { ...one.row, line: "x=22 hit", metadata: { trace: "1" } },
  });

  it.each([
    ["of the whole range", 90 * minute, (one: Replicated) => one],
    // In a segment the rows of a run share its bytes evenly, so here all are of one size.
    ["by minutes", minute, same],
  ])("are those of one process, with structured metadata, %s", async (_, stepMs, made) => {
    await fc.assert(
      fc.asyncProperty(fc.array(replicated, { minLength: 1, maxLength: 12 }), async (groups) => {
        const rows = groups.flat().map(made);
        const { replicas, store } = place(rows);
        const held = replicas.map((sources) => ({ sources }));
        const all = distinct(rows.map((one) => one.row));
        const one = (scans: LocalScanner) => querierOf(scans, { ingester: [segment(all)] });
        const three = (scans: LocalScanner) =>
          replicatedQuerierOf(scans, { replicas: held, store });
        const wanted = await volumesOf(one, stepMs);
        const size = all.reduce(
          (sum, { line, metadata }) => sum + line.length + (metadata?.trace ? "trace1".length : 0),
          0,
        );
        const counted = wanted.cells.reduce((sum, cell) => sum + Number(cell.split(" ")[3]), 0);
        expect(counted).toBe(size);
        expect(await volumesOf(three, stepMs)).toEqual(wanted);
      }),
      { numRuns: testRuns(40) },
    );
  });
});

it("refuses an answer that would not be whole", async () => {
  const fail = () => {
    throw unavailable("connection refused");
  };
  const rows = [row("a", 0, "one")];
  const held = [
    { sources: [makeHead(rows, { id: "h" })] },
    { sources: [], fail },
    { sources: [], fail },
  ];
  const query = answered(held, [], "{app=`a`}", { from: 0, to: minute * ms });
  const error = await query.catch((reason: unknown) => reason);
  expect([errorCodeOf(error), (error as Error).message]).toEqual([
    "unavailable",
    "too few ingesters answered: 1 of 3, without i1, i2; the answer would not be whole",
  ]);
});

it("skips what is the same without a look at a row, and scans one ingester", async () => {
  const rows = Array.from({ length: 600 }, (_, i) => row("a", i * 3000 * ms, `line ${i}`));
  const sources = () => [makeHead(rows, { id: `${made++}`, rowsPerBlock: 20 })];
  const scans = new LocalScanner(2);
  const held = [0, 1, 2].map(() => ({ sources: sources() }));
  const querier = replicatedQuerierOf(scans, { replicas: held, store: [] });
  const plan = planOf("sum(count_over_time({app=`a`} |= `line` [1d]))", {
    from: 40 * minute * ms,
    to: 40 * minute * ms,
  });
  const { result, stats } = await querier.run(
    "query",
    { tenants: ["t"], plan, limits: noLimits },
    never,
  );
  scans.close();
  expect(plain({ result, stats })).toEqual(["{} 600"]);
  expect(scans.jobs.filter((job) => job.startsWith("rowHashes"))).toEqual([]);
  const scanned = scans.jobs.filter((job) => job.startsWith("scan ")).map((job) => job.slice(5));
  expect(new Set(scanned).size).toBe(1);
  expect(stats.ingester.headLines).toEqual(600);
});

it("counts each row once, whichever blocks of the heads earlier queries saw", async () => {
  // Each minute is a block, and all blocks have as many rows.
  const rows = Array.from({ length: 200 }, (_, i) => row("a", i * 3000 * ms, `line ${i}`));
  const scans = new LocalScanner(2);
  const held = [0, 1, 2].map(() => ({
    sources: [makeHead(rows, { id: `${made++}`, rowsPerBlock: 20 })],
  }));
  const querier = replicatedQuerierOf(scans, { replicas: held, store: [] });
  const lines: unknown[] = [];
  for (const [from, to] of [
    [1, 2],
    [4, 5],
    [4, 6],
    [7, 8],
  ] as const) {
    const range = { from: from * minute * ms, to: to * minute * ms, limit: 1000 };
    const request = { tenants: ["t"], plan: planOf("{app=`a`}", range), limits: noLimits };
    lines.push((await querier.run("query", request, never)).stats.entriesReturned);
  }
  scans.close();
  expect(lines).toEqual([20, 20, 40, 20]);
});
