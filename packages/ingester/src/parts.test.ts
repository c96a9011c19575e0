import { mock } from "node:test";
import { describe, expect, it } from "@jest/globals";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import { Tenant } from "./tenant/tenant.js";
import { readRows, setUp } from "./testing/ingester.js";

const day = 20_400n * 86_400_000_000_000n;
const count = 40_000;
const line = (i: number) => `line ${i}`.padEnd(12);

/** Rows without a body: the log gets them in columns. */
function push(labels: Record<string, string>, lines: readonly string[], firstNs = 0n) {
  const rows = lines.map((text, i) => ({ ns: day + firstNs + BigInt(i), line: text }));
  return { tenant: "t", batch: makeBatch([{ labels, rows }]) };
}

const pushOfRows = (rowCount: number) =>
  push(
    { app: "large" },
    Array.from({ length: rowCount }, (_, i) => line(i)),
  );
const large = () => pushOfRows(count);

/** Rows of 64 pairs, each with a name of its own. */
function pushOfNames(rowCount: number) {
  const rows = Array.from({ length: rowCount }, (_, row) => ({
    ns: day + BigInt(row),
    line: line(row),
    metadata: Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`n${row * 64 + i}`, "v"])),
  }));
  return { tenant: "t", batch: makeBatch([{ labels: { app: "names" }, rows }]) };
}

/** Streams of one row. */
function pushOfStreams(streamCount: number) {
  const streams = Array.from({ length: streamCount }, (_, i) => ({
    labels: { app: `${i}` },
    rows: [{ ns: day, line: line(i) }],
  }));
  return { tenant: "t", batch: makeBatch(streams) };
}

/** A disk that notes its writes of the log, and can fail at one of them. */
function watchedDisk() {
  const state = { writes: 0, failsAt: Number.POSITIVE_INFINITY };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      const file = await nodeWalDisk.create(path);
      return {
        ...file,
        writev: (parts) => {
          if (++state.writes === state.failsAt) throw new Error("the disk fails");
          return file.writev(parts);
        },
      };
    },
  };
  return { disk, state };
}

describe("a push of many rows in columns", () => {
  it("is logged in parts, between which those of other tenants go on, while those of its own wait", async () => {
    const { disk, state } = watchedDisk();
    const { ingester, dir } = await setUp({ disk });
    await ingester.start();
    const done: string[] = [];
    const small = push({ app: "small" }, ["a line"]);
    await Promise.all([
      ingester.push(large()).then(() => done.push("large")),
      ingester.push(small).then(() => done.push("own")),
      ingester.push({ ...small, tenant: "other" }).then(() => done.push("other")),
    ]);
    expect(done).toEqual(["other", "large", "own"]);
    // The one of another tenant is written with the first part.
    expect(state.writes).toBe(4);
    const rows = await readRows(ingester, "t");
    expect(rows.length).toBe(count + 1);
    const later = await setUp({ dir });
    await ingester.stop();
    await later.ingester.start();
    expect(await readRows(later.ingester, "t")).toEqual(rows);
    await later.ingester.stop();
  });

  it("keeps the parts that were logged when a later one fails; sent again each row is there once", async () => {
    const { disk, state } = watchedDisk();
    const { ingester } = await setUp({ disk });
    await ingester.start();
    state.failsAt = 2;
    await expect(ingester.push(large())).rejects.toMatchObject({ status: 503 });
    const kept = await readRows(ingester, "t");
    expect([kept.length > 0, kept.length < count]).toEqual([true, true]);
    expect(await ingester.push(large())).toEqual({ refusals: [] });
    const rows = await readRows(ingester, "t");
    expect([rows.length, new Set(rows).size]).toEqual([count, count]);
    await ingester.stop();
  });

  it.each([
    ["rows that fit", () => pushOfRows(16_376), 1],
    ["one row more", () => pushOfRows(16_377), 2],
    ["streams that fit", () => pushOfStreams(1820), 1],
    ["many streams", () => pushOfStreams(4000), 3],
    ["new names of metadata", () => pushOfNames(300), 2],
    ["few names of metadata", () => pushOfNames(15), 1],
  ])("is cut by what it costs: %s", async (_, make, writes) => {
    const { disk, state } = watchedDisk();
    const { ingester, dir } = await setUp({ disk });
    await ingester.start();
    await ingester.push(make());
    expect(state.writes).toBe(writes);
    const rows = await readRows(ingester, "t");
    await ingester.stop();
    const later = await setUp({ dir });
    await later.ingester.start();
    expect(await readRows(later.ingester, "t")).toEqual(rows);
    await later.ingester.stop();
  });

  it("lets other work run after a part of refused streams, of which nothing is logged", async () => {
    const { ingester } = await setUp({ limits: { max_global_streams_per_user: 1 } });
    await ingester.start();
    const { append } = Tenant.prototype;
    const log: string[] = [];
    const turn = () => {
      log.push("turn");
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    type Args = Parameters<Tenant["append"]>;
    const watched = mock.method(
      Tenant.prototype,
      "append",
      function* (this: Tenant, ...args: Args) {
        const parts = append.apply(this, args);
        for (;;) {
          const { value, done } = parts.next();
          log.push("part");
          if (done === true) return value;
          yield value;
        }
      },
    );
    const { refusals } = await ingester.push(pushOfStreams(20_000));
    clearImmediate(next);
    watched.mock.restore();
    expect(refusals.reduce((sum, { entries }) => sum + entries, 0)).toBe(19_999);
    // The first part comes after the streams are numbered, in turns that do not count here.
    const order = log.join().replace(/^(turn,)*|(,turn)*$/g, "");
    expect(/^part(,(turn,)+part){9}$/.test(order)).toBe(true);
    await ingester.stop();
  });

  it.each([
    ["fits", count * 12, 0],
    ["does not fit", count * 12 - 1, count],
  ])("is taken or refused as a whole: the rate of its stream %s", async (_, burst, refused) => {
    const limits = { per_stream_rate_limit: 1, per_stream_rate_limit_burst: burst };
    const { ingester } = await setUp({ limits });
    await ingester.start();
    const { refusals } = await ingester.push(large());
    expect(refusals.map(({ entries }) => entries)).toEqual(refused === 0 ? [] : [refused]);
    expect((await readRows(ingester, "t")).length).toBe(count - refused);
    await ingester.stop();
  });
});
