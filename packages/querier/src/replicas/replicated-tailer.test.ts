import { afterEach, describe, expect, it } from "@jest/globals";
import type { DroppedRow, Tailer, TailRows } from "@skald/contracts";
import { type LogResult, lineAt, linesOf } from "@skald/logql";
import {
  emptyLabels,
  invalidArgument,
  labelsFromObject,
  type SkaldError,
  unavailable,
} from "@skald/model";
import type { Replica } from "./replicated-ingester.js";
import { ReplicatedTailer } from "./replicated-tailer.js";

type Row = readonly [ms: number, line: string, trace?: string];

function rowsOf(rows: readonly Row[]): LogResult {
  const lines = rows.map(([, line]) => Buffer.from(line));
  const offsets = new Uint32Array(rows.length + 1);
  for (const [i, { length }] of lines.entries()) offsets[i + 1] = offsets[i]! + length;
  const stream = labelsFromObject({ app: "a" });
  return {
    kind: "streams",
    rowCount: rows.length,
    timestamps: BigInt64Array.from(rows, ([ms]) => BigInt(ms) * 1_000_000n),
    labelSet: Uint32Array.from(rows, (_, i) => i),
    lines: linesOf({ bytes: Buffer.concat(lines), offsets }),
    labels: rows.map(([, , trace]) => {
      const own = trace === undefined ? emptyLabels : labelsFromObject({ trace });
      return {
        labels: labelsFromObject({ app: "a", ...(trace === undefined ? {} : { trace }) }),
        categories: { stream, structuredMetadata: own, parsed: emptyLabels },
      };
    }),
    warnings: [],
  };
}

/** An ingester whose tail gives what it is told to. */
class FakeIngester implements Tailer {
  opened = 0;
  taken = 0;
  #items: (TailRows | { readonly end: unknown })[] = [];
  #wake = () => undefined as void;

  say(...rows: Row[]) {
    this.#put({ rows: rowsOf(rows), dropped: [] });
  }
  drop(...dropped: DroppedRow[]) {
    this.#put({ dropped, unnamed: 7 });
  }
  begin() {
    this.#put({ dropped: [] });
  }
  end(error?: unknown) {
    this.#put({ end: error });
  }

  async *tail(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<TailRows, void> {
    this.opened++;
    signal.addEventListener("abort", () => this.#wake());
    while (!signal.aborted) {
      const item = this.#items.shift();
      if (item === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (!("end" in item)) {
        this.taken++;
        yield item;
      } else if (item.end !== undefined) throw item.end;
      else return;
    }
  }

  #put(item: TailRows | { readonly end: unknown }) {
    this.#items.push(item);
    this.#wake();
  }
}

const request = {
  tenant: "a",
  matchers: [{ name: "app", op: "=" as const, value: "a" }],
  stages: [],
};
const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

/** A tail of a ring of ingesters with these names. */
function follow(names: string, maxMissing = 1) {
  const stop = new AbortController();
  stops.push(stop);
  const all = new Map([..."abcdef"].map((id) => [id, new FakeIngester()] as const));
  const instancesOf = (ids: string): Replica[] => [...ids].map((id) => ({ id, zone: id }));
  const ring = { instances: instancesOf(names), maxMissing, byZone: false };
  let look = () => undefined as void;
  const lost: string[] = [];
  const clock = { ms: 1000, nowMs: () => clock.ms };
  const tailer = new ReplicatedTailer({
    replicasOf: () => ring,
    connect: ({ id }) => all.get(id)!,
    onLost: (id) => lost.push(id),
    clock,
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        look = resolve;
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  });
  const tail = tailer.tail(request, { signal: stop.signal })[Symbol.asyncIterator]();
  const at = (id: string) => all.get(id)!;
  const begin = async () => {
    const first = tail.next();
    for (const { id } of ring.instances) at(id).begin();
    expect(await first).toEqual({ done: false, value: { dropped: [] } });
  };
  const setRing = async (ids: string) => {
    ring.instances = instancesOf(ids);
    look();
    await settle();
  };
  return { tail, at, begin, setRing, stop, lost, clock };
}

async function settle() {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
}

async function textsOf(next: Promise<IteratorResult<TailRows, unknown>>) {
  const { value, done } = await next;
  if (done) return "end";
  const { rows } = value;
  return Array.from({ length: rows?.rowCount ?? 0 }, (_, i) =>
    Buffer.from(lineAt(rows!.lines, i)).toString(),
  );
}

async function droppedOf(next: Promise<IteratorResult<TailRows, unknown>>) {
  const { value } = await next;
  return (value as TailRows).dropped.map((row) => [
    Number(row.timestampNs / 1_000_000n),
    Object.fromEntries(row.labels.names.map((name, i) => [name, row.labels.values[i]])),
  ]);
}

describe("ReplicatedTailer", () => {
  it("begins when so many follow that no row passes them by", async () => {
    const { tail, at } = follow("abc");
    let isOpen = false;
    const first = tail.next().then(() => (isOpen = true));
    at("a").begin();
    await settle();
    expect(isOpen).toBe(false);
    at("b").end(unavailable("gone"));
    at("c").begin();
    await first;
  });

  it("fails to begin when too many fail, and with what a stage refuses", async () => {
    const few = follow("abc");
    const failed = few.tail.next();
    few.at("a").end(unavailable("gone"));
    few.at("b").end(unavailable("gone"));
    await expect(failed).rejects.toMatchObject({ code: "unavailable" });
    const refused = follow("abc");
    refused.at("a").end(invalidArgument("no such template"));
    await expect(refused.tail.next()).rejects.toThrow("no such template");
  });

  it("shows each row once, and as often as one ingester has it", async () => {
    const { tail, at, begin } = follow("abc");
    await begin();
    at("a").say([1, "x"], [2, "y"], [2, "y"]);
    expect(await textsOf(tail.next())).toEqual(["x", "y", "y"]);
    at("b").say([1, "x"], [2, "y"], [3, "z"]);
    expect(await textsOf(tail.next())).toEqual(["z"]);
    at("c").say([1, "x", "t"], [2, "x"], [2, "y"], [2, "y"], [2, "y"]);
    expect(await textsOf(tail.next())).toEqual(["x", "x", "y"]);
  });

  it("forgets rows after a while", async () => {
    const { tail, at, begin, clock } = follow("abc");
    await begin();
    at("a").say([1, "x"]);
    await tail.next();
    for (let i = 0; i < 2; i++) {
      clock.ms += 30_000;
      at("a").say([2 + i, "other"]);
      await tail.next();
    }
    at("b").say([1, "x"]);
    expect(await textsOf(tail.next())).toEqual(["x"]);
  });

  it("follows those that join, and survives those that leave", async () => {
    const { tail, at, begin, setRing, lost } = follow("abc");
    await begin();
    const next = tail.next();
    await setRing("abcd");
    at("d").begin();
    at("d").say([1, "from d"]);
    expect(await textsOf(next)).toEqual(["from d"]);
    at("a").end();
    await setRing("bcd");
    const other = tail.next();
    at("b").end(unavailable("crashed"));
    await settle();
    await setRing("bcd");
    at("b").begin();
    at("b").say([2, "from b"]);
    expect(await textsOf(other)).toEqual(["from b"]);
    expect([at("a").opened, at("b").opened, lost]).toEqual([1, 2, ["b"]]);
  });

  it("tells of lost ingesters once too few are left, each time", async () => {
    const { tail, at, begin, setRing } = follow("abc");
    await begin();
    const dropped = droppedOf(tail.next());
    at("a").end(unavailable("gone"));
    await settle();
    at("b").end(unavailable("gone"));
    expect(await dropped).toEqual([[1000, { app: "a" }]]);
    at("c").say([1, "x"]);
    expect(await textsOf(tail.next())).toEqual(["x"]);
    const again = droppedOf(tail.next());
    await setRing("abc");
    at("b").begin();
    await settle();
    at("c").end(unavailable("gone"));
    expect(await again).toEqual([[1000, { app: "a" }]]);
  });

  it("tells of rows that were dropped only where no other can have them", async () => {
    const { tail, at, begin } = follow("abc");
    await begin();
    const next = tail.next();
    const labels = labelsFromObject({ app: "a" });
    at("a").drop({ timestampNs: 5_000_000n, labels });
    await settle();
    at("b").drop({ timestampNs: 6_000_000n, labels });
    expect(await droppedOf(next)).toEqual([
      [5, { app: "a" }],
      [6, { app: "a" }],
    ]);
    expect((await next).value).toMatchObject({ unnamed: 14 });
  });

  it("takes from each no more than one item ahead", async () => {
    const { tail, at, begin } = follow("a", 0);
    await begin();
    for (let i = 0; i < 10; i++) at("a").say([i, "x"]);
    await settle();
    expect(at("a").taken).toBe(2);
    expect(await textsOf(tail.next())).toEqual(["x"]);
  });

  it("ends when nobody is left, and with its signal", async () => {
    const left = follow("a", 0);
    await left.begin();
    left.at("a").end();
    expect(await droppedOf(left.tail.next())).toHaveLength(1);
    expect(await textsOf(left.tail.next())).toBe("end");
    const stopped = follow("abc");
    await stopped.begin();
    const next = stopped.tail.next();
    stopped.stop.abort();
    expect(await textsOf(next)).toBe("end");
  });

  it("throws what a stage refuses later on", async () => {
    const { tail, at, begin } = follow("abc");
    await begin();
    at("b").end(invalidArgument("no"));
    const error = await tail.next().catch((one: SkaldError) => one);
    expect(error).toMatchObject({ code: "invalid_argument" });
  });
});
