import { afterAll, describe, expect, it } from "@jest/globals";
import type { Deletes, DeletesRequest } from "@skald/contracts";
import { type LogExpr, type LogPlan, parseQuery } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
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
import { LocalScanner } from "./testing/local-scanner.js";
import { plain } from "./testing/plain.js";
import { querierOf } from "./testing/querier.js";
import { never, noLimits, planOf } from "./testing/requests.js";

const directory = makeDirectory();
afterAll(directory.remove);

const ms = 1_000_000;
const dayMs = 86_400_000;
let made = 0;

interface Placed {
  readonly tenant: string;
  readonly day: number;
  readonly row: SourceRow;
  /** Places that have the row: one, or several as after a retry. */
  readonly places: readonly number[];
}

const placed: fc.Arbitrary<Placed> = fc
  .record({
    tenant: fc.constantFrom("t", "u"),
    day: fc.integer({ min: 0, max: 1 }),
    app: fc.constantFrom("a", "b", "c"),
    time: fc.integer({ min: 0, max: 12 }),
    line: fc.constantFrom("", "x=1", "x=22 hit", "hit"),
    trace: fc.constantFrom("", "1", "2"),
    places: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 3 }),
  })
  .map(({ tenant, day, app, time, line, trace, places }) => ({
    tenant,
    day,
    row: row(app, (day * dayMs + time) * ms, line, { trace }),
    places,
  }));

const query = fc.constantFrom(
  "{app=~`.+`}",
  "{app=~`a|b`} |= `hit`",
  "{app=`a`} | trace=`1`",
  "{app=~`.+`,__tenant_id__=`u`}",
  "{app=~`.+`,__tenant_id__!=`t`} | logfmt | x > 3",
  "count_over_time({app=~`.+`}[1d])",
  "sum(count_over_time({app=~`.+`}[1d]))",
  "sum by (app) (bytes_over_time({app=~`a|b`}[2d]))",
  "sum by (app) (count_over_time({app=~`.+`}[5ms]))",
  "sum by (__tenant_id__) (bytes_over_time({app=~`a|b`}[3d]))",
  "sum by (trace) (rate({app=~`.+`} |= `hit` [1d]))",
  "max by (app) (max_over_time({app=~`.+`} | logfmt | unwrap x [2d]))",
  "quantile_over_time(0.5, {app=~`.+`} | logfmt | __error__=`` | unwrap x [2d]) by (app)",
  "sum(count_over_time({app=~`.+`,__tenant_id__=~`t|u`} |= `x` [2d])) / sum(count_over_time({app=~`.+`}[2d]))",
);
const params = fc.record({
  from: fc.constantFrom(0, 3 * ms, dayMs * ms),
  to: fc.constantFrom(8 * ms, dayMs * ms + 7 * ms, 2 * dayMs * ms),
  limit: fc.constantFrom(1, 3, 10, 1000),
  direction: fc.constantFrom("forward" as const, "backward" as const),
});

/** What a row is told apart by: sources must not give it twice. */
function keyOf({ tenant, row: { labels, ns, line, metadata } }: Placed): string {
  return JSON.stringify([tenant, labels, String(ns), line, metadata]);
}

/** One place is a head and one a segment of the ingester; the others are segments of the store. */
function sourcesOf(rows: readonly Placed[], placeOf: (row: Placed) => readonly number[]) {
  const groups = new Map<string, SourceRow[]>();
  for (const one of rows) {
    for (const place of placeOf(one)) {
      const key = `${one.tenant} ${one.day} ${place}`;
      groups.set(key, [...(groups.get(key) ?? []), one.row]);
    }
  }
  const ingester: LocalRef[] = [];
  const store: SegmentRef[] = [];
  for (const [key, group] of groups) {
    const [tenant = "", , place = ""] = key.split(" ");
    const options = { id: `${made++}`, tenant, rowsPerBlock: 4 };
    if (place === "3") ingester.push(makeHead(distinct(group), options));
    else if (place === "2") ingester.push(makeSegment(directory.path, group, options));
    else store.push(makeSegment(directory.path, group, options));
  }
  return { ingester, store };
}

/** A head holds each row once, as the ingester sees to. */
function distinct(rows: readonly SourceRow[]): SourceRow[] {
  const text = ({ labels, ns, line, metadata }: SourceRow) =>
    JSON.stringify([labels, String(ns), line, metadata]);
  return [...new Map(rows.map((one) => [text(one), one])).values()];
}

async function ask(
  sources: ReturnType<typeof sourcesOf>,
  text: string,
  asked: object,
  tenants: readonly string[],
  deletes?: Deletes,
) {
  const scans = new LocalScanner(2);
  try {
    const plan = planOf(text, asked);
    const answers: unknown[] = [];
    for (const indexed of [true, false]) {
      const querier = querierOf(scans, sources, undefined, { deletes, indexed });
      answers.push(plain(await querier.run("query", { tenants, plan, limits: noLimits }, never)));
    }
    // Whether segments are counted by an index or scanned is of no account.
    if (!text.startsWith("{")) expect(answers[0]).toEqual(answers[1]);
    return answers[0];
  } finally {
    scans.close();
  }
}

describe("a day index", () => {
  // A place has 4 ms of its own, so that most segments share no time with others.
  const apart = fc.array(
    fc.tuple(placed, fc.nat(3)).map(([one, place]) => ({
      ...one,
      row: { ...one.row, ns: one.row.ns + BigInt((place * 16 - (place % 2)) * ms) },
      places: [place],
    })),
    { maxLength: 60, size: "max" },
  );
  const counted = fc.constantFrom(
    "sum(count_over_time({app=~`.+`}[1d]))",
    "count_over_time({app=~`a|b`}[20ms])",
    "sum by (app) (bytes_over_time({app=~`.+`}[5ms]))",
    "sum by (trace) (count_over_time({app=~`.+`}[2d]))",
    "sum by (__tenant_id__, app) (rate({app=~`.+`}[2d]))",
    "sum(count_over_time({app=`a`}[2d])) / sum(count_over_time({app=~`b|c`}[1d]))",
  );
  const ranges = fc.record({
    from: fc.constantFrom(0, 3 * ms, dayMs * ms),
    to: fc.constantFrom(17 * ms, 40 * ms, dayMs * ms + 7 * ms, 2 * dayMs * ms),
    stepNs: fc.constantFrom(0n, 16_000_000n, BigInt(dayMs * ms)),
  });

  it("counts what the segments hold", async () => {
    const tenants = fc.constantFrom(["t"], ["t", "u"]);
    await fc.assert(
      fc.asyncProperty(apart, counted, ranges, tenants, async (all, text, asked, who) => {
        const unique = [...new Map(all.map((one) => [keyOf(one), one])).values()];
        const few = asked.to - asked.from > 100 * ms ? { ...asked, stepNs: 0n } : asked;
        const got = await ask(
          sourcesOf(unique, ({ places }) => places),
          text,
          few,
          who,
        );
        const want = await ask(
          sourcesOf(unique, () => [0]),
          text,
          few,
          who,
        );
        expect(got).toEqual(want);
      }),
      { numRuns: testRuns(25) },
    );
  });
});

describe("Querier", () => {
  it("gives the same answer however rows are spread over sources", async () => {
    const rows = fc.array(placed, { maxLength: 40, size: "max" });
    const tenants = fc.constantFrom(["t"], ["t", "u"]);
    await fc.assert(
      fc.asyncProperty(rows, query, params, tenants, async (all, text, asked, who) => {
        const unique = [...new Map(all.map((one) => [keyOf(one), one])).values()];
        const many = sourcesOf(all, ({ places }) => places);
        const got = await ask(many, text, asked, who);
        const want = await ask(
          sourcesOf(unique, () => [0]),
          text,
          asked,
          who,
        );
        if (typeof want !== "object" || !text.startsWith("{")) return expect(got).toEqual(want);
        const everything = await ask(many, text, { ...asked, limit: 100_000 }, who);
        expectRows(got as string[], want as string[], everything as string[]);
      }),
      { numRuns: testRuns(12) },
    );
  });
});

describe("an interval", () => {
  // More rows than scans hold, in bursts and gaps: which row is taken depends on all sources.
  const bursts = fc.array(
    fc.record({
      from: fc.integer({ min: 0, max: 3000 }),
      rows: fc.integer({ min: 1, max: 1500 }),
      apart: fc.integer({ min: 0, max: 3 }),
      places: fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 5 },
  );
  const asked = fc.record({
    limit: fc.constantFrom(1, 7, 50, 5000),
    direction: fc.constantFrom("forward" as const, "backward" as const),
    intervalNs: fc.constantFrom(1n, 2n, 60n, 700n),
    from: fc.constantFrom(0, 1000),
    to: fc.constantFrom(3000, 10_000),
  });
  const text = fc.constantFrom("{app=~`.+`}", "{app=~`.+`} |= `hit`");

  it("takes as many rows as the limit, and the same ones however they are spread", async () => {
    await fc.assert(
      fc.asyncProperty(bursts, text, asked, async (all, query, params) => {
        const placed = all.flatMap(({ from, rows, apart, places }, app) =>
          Array.from({ length: rows }, (_, i): Placed => {
            const time = from + i * apart;
            const line = i % 3 === 0 ? `miss ${i}` : `hit ${i}`;
            return { tenant: "t", day: 0, row: row(`${app}`, time, line), places };
          }),
        );
        const got = await ask(
          sourcesOf(placed, ({ places }) => places),
          query,
          params,
          ["t"],
        );
        const times = placed
          .filter(({ row: { line } }) => !query.includes("hit") || line.includes("hit"))
          .map(({ row: { ns } }) => Number(ns - testDayNs))
          .filter((time) => time >= params.from && time < params.to)
          .sort((a, b) => (params.direction === "forward" ? a - b : b - a));
        const want: number[] = [];
        for (const time of times) {
          const distance = Math.abs(time - (want.at(-1) ?? Number.POSITIVE_INFINITY));
          if (distance >= Number(params.intervalNs)) want.push(time);
        }
        const taken = (got as string[]).map((one) => Number(one.split(" ")[0]));
        expect(taken).toEqual(want.slice(0, params.limit));
      }),
      { numRuns: testRuns(15) },
    );
  });
});

describe("scans that end behind some bytes", () => {
  const query = fc.constantFrom(
    "{app=~`.+`}",
    "{app=~`a|b`} |= `hit`",
    "{app=~`.+`} | logfmt | line_format `{{.x}} and more`",
    "{app=~`.+`,__tenant_id__=~`t|u`} | trace=`1`",
  );
  const bytes = fc.constantFrom(1, 10, 100, 1024);
  const deletes: Deletes = {
    active: async ({ tenant }) => [
      {
        ...{ id: "hits", tenant, fromNs: 0n, toNs: testDayNs * 2n, nowNs: 0n },
        log: parseQuery("{app=`b`} |= `hit`") as LogExpr,
      },
    ],
  };

  it("give the answer of scans that do not", async () => {
    const rows = fc.array(placed, { maxLength: 60, size: "max" });
    const intervals = fc.constantFrom(0n, 0n, 1n, 3_000_000n);
    await fc.assert(
      fc.asyncProperty(rows, query, params, intervals, bytes, async (...given) => {
        const [all, text, asked, intervalNs, scanBytes] = given;
        const scans = new LocalScanner(2);
        try {
          const querier = querierOf(
            scans,
            sourcesOf(all, ({ places }) => places),
            undefined,
            { deletes },
          );
          const plan = planOf(text, { ...asked, intervalNs }) as LogPlan;
          const answer = async (some: Partial<LogPlan>) => {
            scans.jobs.length = 0;
            const request = { tenants: ["t", "u"], plan: { ...plan, ...some }, limits: noLimits };
            const rows = plain(await querier.run("query", request, never));
            return { rows, scans: scans.jobs.filter((job) => job.startsWith("scan ")).length };
          };
          const want = await answer({});
          const got = await answer({ scanBytes });
          expect(got.rows).toEqual(want.rows);
          expect(got.scans).toBeGreaterThanOrEqual(want.scans);
        } finally {
          scans.close();
        }
      }),
      { numRuns: testRuns(40) },
    );
  });
});

/** Rows of a tenant that were deleted: by a query, and by the same said of a row. */
const deletions: readonly (readonly [string, (row: Placed) => boolean])[] = [
  ["{app=`a`}", ({ row: { labels } }) => labels.app === "a"],
  ["{app=~`a|b`} |= `hit`", ({ row }) => row.labels.app !== "c" && row.line.includes("hit")],
  ["{app=~`.+`} | trace=`1`", ({ row: { metadata } }) => metadata?.trace === "1"],
  ["{app=`c`} | logfmt | x > 3", ({ row }) => row.labels.app === "c" && row.line === "x=22 hit"],
  ["{app=`z`}", () => false],
];
const deletion = fc.record({
  which: fc.constantFrom(...deletions.keys()),
  tenant: fc.constantFrom("t", "u"),
  from: fc.constantFrom(0, 2 * ms, dayMs * ms + 3 * ms),
  to: fc.constantFrom(6 * ms + 1, 2 * dayMs * ms),
});

describe("a query while rows are deleted", () => {
  it("gives the answer that it would give without them", async () => {
    const rows = fc.array(placed, { maxLength: 40, size: "max" });
    const some = fc.array(deletion, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(rows, query, params, some, async (all, text, asked, deleted) => {
        const isDeleted = (one: Placed) =>
          deleted.some(({ which, tenant, from, to }) => {
            const time = Number(one.row.ns - testDayNs);
            const isMeant = deletions[which]?.[1](one) === true;
            return isMeant && tenant === one.tenant && time >= from && time < to;
          });
        const filters = deleted.map(({ which, from, to, tenant }, i) => ({
          id: `${i}`,
          tenant,
          fromNs: testDayNs + BigInt(from),
          toNs: testDayNs + BigInt(to),
          log: parseQuery(deletions[which]?.[0] as string) as LogExpr,
          nowNs: 0n,
        }));
        const active = async ({ tenant }: DeletesRequest) =>
          filters.filter((one) => one.tenant === tenant);
        const whole = { ...asked, limit: 1000 };
        const places = ({ places: own }: Placed) => own;
        const got = await ask(sourcesOf(all, places), text, whole, ["t", "u"], { active });
        const left = all.filter((one) => !isDeleted(one));
        const want = await ask(sourcesOf(left, places), text, whole, ["t", "u"]);
        const sorted = (answer: unknown) => (Array.isArray(answer) ? [...answer].sort() : answer);
        expect(sorted(got)).toEqual(sorted(want));
      }),
      { numRuns: testRuns(12) },
    );
  });
});

/** The same times; rows of equal time may come in another order, and the limit may cut them elsewhere. */
function expectRows(got: string[], want: string[], everything: string[]): void {
  const times = (rows: string[]) => rows.map((text) => text.split(" ")[0]);
  expect(times(got)).toEqual(times(want));
  const last = times(want).at(-1);
  const certain = (rows: string[]) => rows.filter((text) => text.split(" ")[0] !== last).sort();
  expect(certain(got)).toEqual(certain(want));
  expect(new Set(everything).size).toBeGreaterThanOrEqual(new Set(got).size);
  for (const text of got) expect(everything).toContain(text);
}
