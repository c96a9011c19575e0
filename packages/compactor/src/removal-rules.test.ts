import { afterAll, describe, expect, it } from "@jest/globals";
import type { Ingester } from "@skald/contracts";
import { nsPerMs, type SegmentRef } from "@skald/model";
import { silentLogger } from "@skald/runtime/log";
import { MemoryStore, type ObjectStore, SegmentCatalog } from "@skald/storage";
import { DeletePass } from "./deletion/delete-pass.js";
import { statusOf } from "./deletion/delete-request.js";
import { RemovalRules } from "./removal-rules.js";
import type { RetentionLimits } from "./retention-rules.js";
import { Compactors } from "./testing/compactors.js";
import { Killed, killedAt } from "./testing/faulty-stores.js";
import { asked, hourMs, makeRequests, metricOf, signal, testClock } from "./testing/requests.js";
import { StoreScanner } from "./testing/stored.js";
import {
  baseNs,
  putRows,
  readRows,
  rowTexts,
  type StoredRow,
  table,
} from "./testing/stored-rows.js";

const compactors = new Compactors();
afterAll(() => compactors.close());
const options = { signal };
const dayMs = 86_400_000;
const startMs = Number(baseNs / nsPerMs);
const forEver: RetentionLimits = { retention_period: 0, retention_stream: [] };
/** Small segments are not merged, so that each keeps its id. */
const bounds = {
  ...{ targetBytes: 1, minInputs: 9, maxInputs: 9 },
  ...{ graceMs: 1000, rememberMs: 5000, settleMs: 1e15, deletesAtOnce: 3, mergesAtOnce: 2 },
};

const rows: Readonly<Record<string, readonly StoredRow[]>> = {
  s0: [
    { app: "a", time: 0, line: "x" },
    { app: "a", time: 1e9, line: "y" },
  ],
  s1: [
    { app: "a", time: 2e9, line: "x" },
    { app: "b", time: 3e9, line: "y" },
    { app: "b", time: 4e9, line: "secret" },
  ],
};

/** A store with two segments of a day, and all that deletes from it; a run looks at the day once. */
async function made(limits: RetentionLimits = forEver) {
  const clock = testClock(startMs + 2 * hourMs);
  const inner = new MemoryStore(clock);
  for (const [id, some] of Object.entries(rows)) await putRows(inner, id, some);
  const { deletes, metrics } = makeRequests(inner, clock);
  await deletes.refresh(options);
  const scanner = new StoreScanner(inner);
  const locate = (key: string) => ({ kind: "object" as const, key });
  const given = { limits };
  const rules = new RemovalRules({
    ...{ deletes, scanner, locate, clock, metrics, log: silentLogger() },
    limitsOf: () => given.limits,
  });
  const held: SegmentRef[] = [];
  const ingester = {
    select: async () => ({ view: "v", sources: held }),
    run: scanner.run.bind(scanner),
    release: async () => undefined,
  } as unknown as Ingester;
  const pass = new DeletePass({
    ...{ deletes, scanner, ingester, maxRequests: 2, log: silentLogger() },
    catalog: new SegmentCatalog({ store: inner, locate, clock: { elapsedMs: () => 0 } }),
  });
  const runOn = async (store: ObjectStore) =>
    (await compactors.make(store, { rules, clock, bounds })).run(table, options);
  const run = () => runOn(inner);
  /** Deletes what has counted no more for long enough. */
  const runAfterGrace = () => {
    clock.ms += bounds.graceMs + 1;
    return run();
  };
  const take = async (query: string, ...boundsMs: number[]) => {
    await deletes.create("t", asked(query, ...boundsMs.map((ms) => startMs + ms)), options);
    clock.ms += hourMs;
  };
  const statuses = () => deletes.list("t").map(statusOf);
  const left = () => readRows(inner);
  return {
    ...{ clock, deletes, given, held, inner, metrics, rules, scanner },
    ...{ pass, run, runAfterGrace, runOn, take, statuses, left },
  };
}

const all = Object.values(rows).flat();
const without = (isGone: (row: StoredRow) => boolean) =>
  rowTexts(all.filter((row) => !isGone(row)));

describe("deletion", () => {
  it("waits while a request can be cancelled", async () => {
    const { clock, take, rules, run, left } = await made();
    await take('{app="a"}', 0, 5000);
    clock.ms -= 1;
    await run();
    expect([rules.isDue(table), await left()]).toEqual([false, without(() => false)]);
  });

  it.each<[string, number, number, (row: StoredRow) => boolean]>([
    ['{app="a"}', 0, 1000, ({ app, time }) => app === "a" && time <= 1e9],
    ['{app="a"}', 0, 5000, ({ app }) => app === "a"],
    ['{app="b"} |= "secret"', 0, 5000, ({ line }) => line === "secret"],
    ['{app=~".+"}', 0, 5000, () => true],
    ['{app="zz"}', 0, 5000, () => false],
  ])("takes the rows of %s from %i to %i ms out of the store", async (query, from, to, isGone) => {
    const { take, pass, run, runAfterGrace, rules, statuses, left, metrics } = await made();
    await take(query, from, to);
    expect(rules.isDue(table)).toBe(true);
    await run();
    expect(await left()).toEqual(without(isGone));
    const gone = all.filter(isGone).length;
    expect(await metricOf(metrics, 'compactor_deleted_lines{user="t"}')).toBe(gone);
    expect(statuses()).toEqual(["received"]);
    await pass.run(options);
    const hasRows = all.some(isGone);
    expect([statuses(), rules.isDue(table)]).toEqual([
      [hasRows ? "received" : "processed"],
      hasRows,
    ]);
    await runAfterGrace();
    await pass.run(options);
    expect([statuses(), rules.isDue(table)]).toEqual([["processed"], false]);
    await run();
    expect(await left()).toEqual(without(isGone));
  });

  it("is done part by part, as nothing of it is met any more", async () => {
    const { take, pass, run, runAfterGrace, statuses } = await made();
    await take('{app="b"} |= "secret"', 0, 1500, 3500, 9000);
    await pass.run(options);
    expect(statuses()).toEqual(["33% Complete"]);
    await run();
    await runAfterGrace();
    await pass.run(options);
    expect(statuses()).toEqual(["processed"]);
  });

  it("waits for rows that the ingester still holds", async () => {
    const { held, inner, take, pass, statuses } = await made();
    await putRows(inner, "s9", [{ app: "c", time: 0, line: "x" }]);
    const catalog = new SegmentCatalog({
      ...{ store: inner, clock: { elapsedMs: () => 0 } },
      locate: (key) => ({ kind: "object", key }),
    });
    const range = { tenant: "t", fromNs: baseNs, toNs: baseNs + 1n };
    const listed = await catalog.list(range, options);
    held.push(...listed.filter(({ id }) => id === "s9"));
    await take('{app="c"}', 0, 1);
    await pass.run(options);
    expect(statuses()).toEqual(["received"]);
    const { run, left } = await made();
    await run();
    expect(await left()).toEqual(without(() => false));
  });

  it("looks after as many requests at a time as it may", async () => {
    const { take, pass, statuses } = await made();
    for (const app of ["x", "y", "z"]) await take(`{app="${app}"}`, 0, 1);
    await pass.run(options);
    expect(statuses()).toEqual(["processed", "processed", "received"]);
    await pass.run(options);
    expect(statuses()).toEqual(["processed", "processed", "processed"]);
  });

  it("looks after other requests while the first ones stay open", async () => {
    const { take, pass, statuses } = await made();
    for (const app of ["a", "b", "z"]) await take(`{app="${app}"}`, 0, 9000);
    for (let i = 0; i < 2; i++) await pass.run(options);
    expect(statuses()).toEqual(["received", "received", "processed"]);
  });

  it("is not done with what cannot be read, and goes on behind it", async () => {
    const { scanner, take, pass, run, runAfterGrace, left, statuses } = await made();
    await take('{app="a"}', 0, 5000);
    scanner.onLook = (id) => {
      if (id === "s0") throw new Error("damaged");
    };
    await run();
    await pass.run(options);
    expect([await left(), statuses()]).toEqual([
      without(({ app, time }) => app === "a" && time > 1e9),
      ["received"],
    ]);
    scanner.onLook = () => {};
    await run();
    await runAfterGrace();
    await pass.run(options);
    expect([await left(), statuses()]).toEqual([without(({ app }) => app === "a"), ["processed"]]);
  });

  it.each(["before", "after"] as const)(
    "makes good what was stopped %s any step",
    async (moment) => {
      for (let step = 1; ; step++) {
        const { clock, inner, left, runOn, take } = await made();
        await take('{app="a"}', 0, 1000);
        await take('{app="b"} |= "secret"', 0, 9000);
        const died = await runOn(killedAt(inner, step, moment)).then(
          () => false,
          (error: unknown) => error instanceof Killed,
        );
        expect(rowTexts(all)).toEqual(expect.arrayContaining(await left()));
        clock.ms += bounds.graceMs + 1;
        await runOn(inner);
        expect(await left()).toEqual(
          without(({ app, time, line }) => (app === "a" && time <= 1e9) || line === "secret"),
        );
        if (!died) return;
      }
    },
  );
});

describe("rows that were deleted", () => {
  const indexes = async (store: ObjectStore) => {
    const keys: string[] = [];
    for await (const { key } of store.list("", options)) if (key.endsWith(".day")) keys.push(key);
    return keys;
  };
  const flip = async (store: ObjectStore, key: string) => {
    const bytes = Uint8Array.from(await store.get(key, options));
    const at = bytes.length >> 1;
    bytes[at] = bytes[at]! ^ 4;
    await store.put(key, bytes, options);
  };
  const whole = { start: baseNs, end: baseNs + 10_000_000_000n };
  const range = { tenant: "t", fromNs: whole.start, toNs: whole.end };
  /** What happens between a deletion and the damage; a pass that finds no row of the request ends it. */
  const moments: [string, (state: Awaited<ReturnType<typeof made>>) => Promise<void>][] = [
    ["at once", async () => {}],
    ["after a look", ({ pass }) => pass.run(options)],
    [
      "after the grace time",
      async ({ clock, pass }) => {
        clock.ms += bounds.graceMs + 1;
        await pass.run(options);
      },
    ],
    [
      "once the old segments are deleted",
      async ({ pass, runAfterGrace }) => {
        await runAfterGrace();
        await pass.run(options);
      },
    ],
  ];
  const deletions: [string, string, (row: StoredRow) => boolean][] = [
    ["whole segments", '{app=~".+"}', () => true],
    ["one segment and a part of another", '{app="a"}', ({ app }) => app === "a"],
    ["single rows", '{app="b"} |= "secret"', ({ line }) => line === "secret"],
  ];
  const cases = moments.flatMap(([when, wait]) =>
    deletions.flatMap(([what, query, isGone]) =>
      [1, 2, 9].map((count) => ({ when, wait, what, query, isGone, count })),
    ),
  );

  it.each(cases)(
    "stay away when the newest $count day indexes are damaged $when: $what",
    async ({ wait, query, isGone, count }) => {
      const state = await made();
      const { deletes, inner, left, run, runAfterGrace, pass, statuses, take } = state;
      await run();
      await take(query, 0, 9000);
      await run();
      await wait(state);
      for (const key of (await indexes(inner)).slice(-count)) await flip(inner, key);
      const kept = without(isGone);
      /** What no request hides is not to be seen. */
      const check = async () => {
        const hiding = await deletes.active(range);
        const stored = await left().catch(() => kept);
        if (hiding.length === 0) expect(stored).toEqual(kept);
      };
      await check();
      await run();
      expect(await left()).toEqual(kept);
      await pass.run(options);
      await check();
      await runAfterGrace();
      await pass.run(options);
      expect([await left(), statuses()]).toEqual([kept, ["processed"]]);
    },
  );
});

describe("retention", () => {
  const week: RetentionLimits = { retention_period: 7 * dayMs, retention_stream: [] };
  const shortB: RetentionLimits = {
    retention_period: 7 * dayMs,
    retention_stream: [{ selector: '{app="b"}', priority: 1, period: 2 * dayMs }],
  };

  it("drops segments of which every row is too old, without a look at them", async () => {
    const { clock, run, left, scanner, metrics } = await made(week);
    clock.ms = startMs + 7 * dayMs + 1000;
    await run();
    expect(await left()).toEqual(without(() => false));
    clock.ms += 1;
    await run();
    expect(await left()).toEqual(rowTexts(rows.s1 as StoredRow[]));
    clock.ms += dayMs;
    await run();
    expect([await left(), scanner.looked]).toEqual([[], []]);
    expect(await metricOf(metrics, 'compactor_removed_rows_total{reason="retention"}')).toBe(5);
  });

  it("writes segments again without the streams that go before others, and does not look again", async () => {
    const { clock, run, left, scanner } = await made(shortB);
    clock.ms = startMs + 4 * dayMs;
    await run();
    expect(await left()).toEqual(without(({ app }) => app === "b"));
    await run();
    const { length } = scanner.looked;
    await run();
    expect(scanner.looked.length).toBe(length);
  });

  it("looks again when the rules have changed", async () => {
    const { clock, given, run, left } = await made(week);
    clock.ms = startMs + 4 * dayMs;
    await run();
    given.limits = shortB;
    await run();
    expect(await left()).toEqual(without(({ app }) => app === "b"));
  });

  it("deletes nothing of a tenant whose rules cannot be read", async () => {
    const wrong = { ...week, retention_stream: [{ selector: "{", priority: 1, period: dayMs }] };
    const { clock, run, left } = await made(wrong);
    clock.ms = startMs + 90 * dayMs;
    await run();
    expect(await left()).toEqual(without(() => false));
  });
});
