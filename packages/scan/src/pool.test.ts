import { describe, expect, it } from "@jest/globals";
import type { DuplicateTask, RowMask, StreamTask } from "@skald/contracts";
import type { Findings } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { type HeadView, type LocalRef, shareTexts } from "@skald/storage";
import { maxIndexBytes } from "./jobs.js";
import { ScanPool } from "./pool.js";
import type { ImagedRef } from "./source/cache.js";
import { refsOf, sourcesOf } from "./source/source.js";
import { leafOf } from "./testing/scans.js";

const { signal } = new AbortController();
const share = { tenant: "t", actors: [], cost: 0 };
const range = { fromNs: 0n, toNs: 9n };

const segment = (id: string): SegmentRef => ({
  kind: "segment",
  id,
  tenant: "t",
  minNs: 0n,
  maxNs: 9n,
  sizeBytes: 1,
  location: { kind: "file", path: id },
});
const head: HeadView = {
  ...{ kind: "head", id: "h", tenant: "t", minNs: 0n, maxNs: 9n },
  streams: new Uint32Array(0),
  texts: shareTexts([]),
  matchers: [],
  blocks: [],
  sizeBytes: 0,
};

/** The row that a pair shares, by the ids of the fake. */
function maskOf(older: LocalRef): RowMask {
  return { blocks: Uint32Array.of(0), rows: [Uint32Array.of(older.id.charCodeAt(0))] };
}

function poolOf() {
  const jobs: string[] = [];
  let fails = false;
  const run = (name: string, task: DuplicateTask<LocalRef>) => {
    const [newer, ...older] = refsOf(task) as [LocalRef, ...LocalRef[]];
    jobs.push(
      `${name} ${older.map(({ id }) => id).join()}|${newer.id}${task.range ? " range" : ""}`,
    );
    if (fails) return Promise.reject(new Error("cancelled"));
    return Promise.resolve({ value: older.map(maskOf), decoded: [] });
  };
  const scans = new ScanPool({ run } as unknown as ConstructorParameters<typeof ScanPool>[0]);
  const rowsOf = async (newer: LocalRef, ...older: LocalRef[]) => {
    const { rows } = await scans.run(
      "duplicates",
      { sources: sourcesOf([newer, ...older]), range },
      { signal, share },
    );
    return String.fromCharCode(...(rows[0] ?? []));
  };
  return { jobs, rowsOf, fail: (now: boolean) => (fails = now) };
}

describe("indexes of segments", () => {
  it("go from the thread that decoded them to all others, as long as there is room", async () => {
    const images = new Map<string, SharedArrayBuffer>();
    const given: unknown[] = [];
    const forgotten: unknown[] = [];
    const scans = new ScanPool({
      run: async <T>(_: string, task: StreamTask<ImagedRef>) => {
        const sources = refsOf(task);
        given.push(...sources.map((ref) => ref.image));
        const decoded = sources
          .filter((ref) => ref.image === undefined)
          .map(({ id }) => ({ place: id, image: images.get(id) as SharedArrayBuffer }));
        return { value: new Uint8Array(0), decoded } as T;
      },
      broadcast: (_, payload) => forgotten.push(payload),
    });
    const ask = (id: string) =>
      scans.run(
        "streams",
        { sources: sourcesOf([segment(id)]), selectors: [], ...range },
        { signal, share },
      );
    for (const id of ["a", "b", "c"]) images.set(id, new SharedArrayBuffer(maxIndexBytes / 2));
    for (const id of ["a", "a", "b", "a", "c", "b"]) await ask(id);
    const [a, c] = [images.get("a"), images.get("c")];
    expect(given.map((image) => image === a || image === c)).toEqual([
      false,
      true,
      false,
      true,
      false,
      false,
    ]);
    expect(forgotten).toEqual([{ path: "b" }, { path: "a" }]);
  });
});

it("gives what a scan found in a segment to scans with the same stages, until the segment is forgotten", async () => {
  const given: unknown[] = [];
  const scans = new ScanPool({
    run: async <T>(_: string, task: StreamTask<ImagedRef>) => {
      const sources = refsOf(task);
      given.push(sources.map(({ id, findings = [] }) => `${id}${findings.length}`).join());
      const found = sources.map(({ id }) => ({ place: id, findings }));
      return { value: new Uint8Array(0), decoded: [], found } as T;
    },
    broadcast: () => {},
  });
  const empty = new Uint32Array(0);
  const findings: Findings = {
    ...{ blocks: empty, wordStart: empty, seen: empty, passed: empty, passedStart: empty },
    ...{ series: new Uint16Array(0), values: new Float64Array(0), labels: [] },
  };
  const ask = (query: string, ...ids: string[]) => {
    const sources = ids.map((id, sequence) => ({ ref: segment(id), sequence }));
    return scans.run("scan", { plan: planOf(query), sources }, { signal, share });
  };
  const planOf = (query: string) => leafOf(`count_over_time({app="a"} ${query} [1s])`);
  await ask('|= "x"', "a");
  await ask('|= "x"', "a", "b");
  await ask('|= "y"', "a");
  scans.forget("a");
  await ask('|= "x"', "a", "b");
  expect(given).toEqual(["a0", "a1,b0", "a0", "a0,b1"]);
});

describe("ScanPool.sharedRows", () => {
  it("has each index decoded by one thread, and gives it to all that compare", async () => {
    const jobs: string[] = [];
    const scans = new ScanPool({
      run: async <T>(name: string, task: StreamTask<ImagedRef>) => {
        const sources = refsOf(task);
        await Promise.resolve();
        const ids = sources.map(({ id, image }) => (image === undefined ? id : `${id}!`));
        jobs.push(`${name} ${ids.join(" ")}`);
        const decoded = sources.map(({ id }) => ({ place: id, image: new SharedArrayBuffer(8) }));
        const isDecoding = name === "decode";
        return { value: isDecoding ? undefined : [], decoded: isDecoding ? decoded : [] } as T;
      },
      broadcast: () => {},
    });
    const sources = sourcesOf(["a", "b", "c"].map(segment));
    const parts = [0, 1].map((index) => ({ sources, wantedFrom: 0, part: { index, count: 2 } }));
    await Promise.all(parts.map((task) => scans.run("sharedRows", task, { signal, share })));
    expect(jobs).toEqual(["decode a c", "decode b", "sharedRows a! b! c!", "sharedRows a! b! c!"]);
  });
});

describe("ScanPool.duplicates", () => {
  it("asks once for a pair of segments, whatever the range", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(segment("x"), segment("a"), segment("b"))).toBe("ab");
    expect(await rowsOf(segment("x"), segment("b"), segment("c"), segment("a"))).toBe("abc");
    expect(await rowsOf(segment("x"), segment("a"), segment("c"))).toBe("ac");
    expect(jobs).toEqual(["duplicates a,b|x", "duplicates c|x"]);
  });

  it("asks for heads each time, which grow, and only for the range", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(jobs).toEqual(["duplicates a|h range", "duplicates a|h range"]);
  });

  it("forgets a job that failed", async () => {
    const { jobs, rowsOf, fail } = poolOf();
    fail(true);
    await expect(rowsOf(segment("x"), segment("a"))).rejects.toThrow("cancelled");
    fail(false);
    expect(await rowsOf(segment("x"), segment("a"))).toBe("a");
    expect(jobs).toHaveLength(2);
  });
});
