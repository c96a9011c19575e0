import { describe, expect, it } from "@jest/globals";
import type { QueryBackend } from "@skald/frontend";
import {
  emptyReadStats,
  type Ingester,
  internal,
  invalidArgument,
  type QueryStats,
  type SegmentRef,
  type SourceRef,
  unavailable,
} from "@skald/model";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { corruptSegment } from "@skald/storage";
import { CorruptSegments } from "./corrupt-segments.js";

type Request = Parameters<QueryBackend["query"]>[0];

const request = { tenants: ["t"] } as unknown as Request;
const { signal } = new AbortController();
const range = { tenant: "t", matchers: [], fromNs: 0n, toNs: 9n, signal };
const stats = { ingester: emptyReadStats(), store: emptyReadStats() } as unknown as QueryStats;

function segment(id: string, path: string): SegmentRef {
  const location = { kind: "file", path } as const;
  return { kind: "segment", id, tenant: "t", minNs: 0n, maxNs: 1n, location, sizeBytes: 1 };
}

/** A querier that reads every source there is, held against the paths that are damaged. */
function makeHarness(sources: { local?: SourceRef[]; stored?: SegmentRef[] }, damaged: string[]) {
  let nowMs = 0;
  const lines: string[] = [];
  const metrics = new Metrics();
  const corrupt = new CorruptSegments({
    clock: { nowMs: () => nowMs },
    log: createLogger({ target: { write: (line) => lines.push(line) } }),
    metrics,
  });
  const inner: Ingester = {
    push: () => Promise.resolve({ refusals: [] }),
    flush: () => Promise.resolve(),
    select: () => Promise.resolve({ sources: sources.local ?? [] }),
  };
  const ingester = corrupt.ingester(inner);
  const catalog = corrupt.catalog({ list: () => Promise.resolve(sources.stored ?? []) });
  let runs = 0;
  const read = async () => {
    runs++;
    const recent = (await ingester.select(range)).sources;
    const held = new Set(recent.map(({ id }) => id));
    const stored = (await catalog.list(range)).filter(({ id }) => !held.has(id));
    const refs = [...recent, ...stored];
    for (const ref of refs) {
      const path = ref.kind === "segment" && ref.location.kind === "file" ? ref.location.path : "";
      if (damaged.includes(path)) throw corruptSegment(path, internal("its checksum is wrong"));
    }
    return refs.map(({ id }) => id);
  };
  const backend = corrupt.backend({
    query: async () => {
      const ids = await read();
      const result = { kind: "scalar", atNs: 0n, value: ids.length, warnings: [] } as const;
      return { result, stats };
    },
    streams: async () => [{ tenant: "t", texts: await read() }],
  });
  return {
    backend,
    ingester,
    lines,
    runs: () => runs,
    pass: (ms: number) => {
      nowMs += ms;
    },
    counted: async () => /corrupt_segments_total (\d+)/.exec((await metrics.read()).text)?.[1],
  };
}

const good = segment("good", "/store/good");
const bad = segment("bad", "/store/bad");

describe("a damaged segment of the store", () => {
  it("is left out of the query that meets it and of later ones, with a warning", async () => {
    const { backend, runs, counted, lines } = makeHarness({ stored: [bad, good] }, ["/store/bad"]);
    const warnings = ["rows are missing: damaged segments were left out: bad"];
    const { result } = await backend.query(request, signal);
    expect(result).toMatchObject({ value: 1, warnings });
    expect(runs()).toBe(2);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 1, warnings });
    expect(runs()).toBe(3);
    expect(await counted()).toBe("1");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      level: "error",
      msg: "a segment is damaged; queries leave it out",
      segment: "/store/bad",
    });
  });

  it("is left out of label queries too", async () => {
    const { backend } = makeHarness({ stored: [bad, good] }, ["/store/bad"]);
    const question = { tenants: ["t"], selectors: [], fromNs: 0n, toNs: 9n };
    expect(await backend.streams(question, signal)).toEqual([{ tenant: "t", texts: ["good"] }]);
  });

  it("among many others is named, up to five", async () => {
    const stored = Array.from({ length: 7 }, (_, i) => segment(`s${i}`, `/store/${i}`));
    const paths = stored.map((_, i) => `/store/${i}`);
    const { backend, counted } = makeHarness({ stored }, paths);
    const { result } = await backend.query(request, signal);
    expect(result.warnings).toEqual([
      "rows are missing: damaged segments were left out: s0, s1, s2, s3, s4 and 2 more",
    ]);
    expect(await counted()).toBe("7");
  });

  it("is tried again later", async () => {
    const damaged = ["/store/bad"];
    const { backend, pass } = makeHarness({ stored: [bad, good] }, damaged);
    await backend.query(request, signal);
    damaged.pop();
    pass(10 * 60_000 - 1);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 1 });
    pass(1);
    const { result } = await backend.query(request, signal);
    expect(result).toMatchObject({ value: 2, warnings: [] });
  });

  it("is no reason for a warning while the ingester has a good copy", async () => {
    const local = [segment("bad", "/local/bad")];
    const { backend, pass } = makeHarness({ local, stored: [bad, good] }, ["/store/bad"]);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 2, warnings: [] });
    local.pop();
    expect((await backend.query(request, signal)).result.warnings).toHaveLength(1);
    local.push(segment("bad", "/local/bad"));
    pass(1);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 2, warnings: [] });
  });
});

describe("a damaged segment of the ingester", () => {
  it("gives way to the copy of the store", async () => {
    const local = [segment("bad", "/local/bad")];
    const { backend } = makeHarness({ local, stored: [bad, good] }, ["/local/bad"]);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 2, warnings: [] });
  });

  it("does not take the head with it", async () => {
    const head = { kind: "head", id: "head", tenant: "t", minNs: 0n, maxNs: 1n } as SourceRef;
    const { backend } = makeHarness({ local: [head, segment("x", "/x")] }, ["/x"]);
    expect((await backend.query(request, signal)).result).toMatchObject({ value: 1 });
  });
});

describe("other errors", () => {
  it.each([
    ["of the caller", invalidArgument("bad step")],
    ["of the store", unavailable("the store is away")],
    ["that nobody foresaw", new TypeError("x is undefined")],
  ])("%s are passed on at once", async (_name, error) => {
    const metrics = new Metrics();
    const log = createLogger({ target: { write: () => undefined } });
    const corrupt = new CorruptSegments({ clock: { nowMs: () => 0 }, log, metrics });
    let runs = 0;
    const fail = () => {
      runs++;
      return Promise.reject(error);
    };
    const backend = corrupt.backend({ query: fail, streams: fail });
    await expect(backend.query(request, signal)).rejects.toBe(error);
    expect(runs).toBe(1);
  });

  it("of damage that leaving out does not help end at some time", async () => {
    const corrupt = new CorruptSegments({
      clock: { nowMs: () => 0 },
      log: createLogger({ target: { write: () => undefined } }),
      metrics: new Metrics(),
    });
    const fail = () => Promise.reject(corruptSegment("x", internal("its checksum is wrong")));
    const backend = corrupt.backend({ query: fail, streams: fail });
    await expect(backend.query(request, signal)).rejects.toThrow("segment x cannot be read");
  });
});

describe("the wrapped ingester", () => {
  it("takes pushes and flushes", async () => {
    const { ingester } = makeHarness({}, []);
    await expect(ingester.push({} as never)).resolves.toEqual({ refusals: [] });
    await expect(ingester.flush()).resolves.toBeUndefined();
  });
});
