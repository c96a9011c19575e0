import { describe, expect, it } from "@jest/globals";
import type { Ingester, SourceRef } from "@skald/contracts";
import { internal, invalidArgument, type SegmentRef, unavailable } from "@skald/model";
import { corruptSegment } from "@skald/storage";
import { CorruptSegments, corruptWarnings } from "./corrupt-segments.js";
import { type Search, SourceFinder } from "./source-finder.js";

const { signal } = new AbortController();
const request = { tenant: "t", matchers: [], fromNs: 0n, toNs: 10n };

function segment(id: string, path: string): SegmentRef {
  const location = { kind: "file", path } as const;
  return { kind: "segment", id, tenant: "t", minNs: 0n, maxNs: 1n, location, sizeBytes: 1 };
}

/** Queries that read every source there is, held against the paths that are damaged. */
function makeHarness(sources: { local?: SourceRef[]; stored?: SegmentRef[] }, damaged: string[]) {
  let nowMs = 0;
  const found: string[] = [];
  const corrupt = new CorruptSegments({
    clock: { elapsedMs: () => nowMs },
    onFound: (name) => found.push(name),
  });
  const ingester = {
    select: async () => ({ sources: sources.local ?? [] }),
  } as Partial<Ingester> as Ingester;
  const catalog = { list: async () => sources.stored ?? [] };
  const finder = new SourceFinder({ ingester, catalog, corrupt });
  let runs = 0;
  const query = () =>
    corrupt.retry(async () => {
      runs++;
      const search: Search = { fresh: false, views: [], missing: new Set(), lists: [] };
      const sources = await finder.list(request, search, signal);
      for (const { ref } of sources) {
        const path =
          ref.kind === "segment" && ref.location.kind === "file" ? ref.location.path : "";
        if (damaged.includes(path)) throw corruptSegment(path, internal("its checksum is wrong"));
      }
      return {
        ids: sources.map(({ ref }) => ref.id),
        warnings: corruptWarnings(search.missing),
      };
    });
  return {
    query,
    found,
    runs: () => runs,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const good = segment("good", "/store/good");
const bad = segment("bad", "/store/bad");

describe("a damaged segment of the store", () => {
  it("is left out of the query that meets it and of later ones, with a warning", async () => {
    const { query, runs, found } = makeHarness({ stored: [bad, good] }, ["/store/bad"]);
    const warnings = ["rows are missing: damaged segments were left out: bad"];
    expect(await query()).toEqual({ ids: ["good"], warnings });
    expect(runs()).toBe(2);
    expect(await query()).toEqual({ ids: ["good"], warnings });
    expect(runs()).toBe(3);
    expect(found).toEqual(["/store/bad"]);
  });

  it("among many others is named, up to five", async () => {
    const stored = Array.from({ length: 7 }, (_, i) => segment(`s${i}`, `/store/${i}`));
    const paths = stored.map((_, i) => `/store/${i}`);
    const { query, found } = makeHarness({ stored }, paths);
    expect((await query()).warnings).toEqual([
      "rows are missing: damaged segments were left out: s0, s1, s2, s3, s4 and 2 more",
    ]);
    expect(found).toEqual(paths);
  });

  it("is tried again later", async () => {
    const damaged = ["/store/bad"];
    const { query, pass } = makeHarness({ stored: [bad, good] }, damaged);
    await query();
    damaged.pop();
    pass(10 * 60_000 - 1);
    expect((await query()).ids).toEqual(["good"]);
    pass(1);
    expect(await query()).toEqual({ ids: ["bad", "good"], warnings: [] });
  });

  it("is no reason for a warning while the ingester has a good copy", async () => {
    const local = [segment("bad", "/local/bad")];
    const { query, pass } = makeHarness({ local, stored: [bad, good] }, ["/store/bad"]);
    expect(await query()).toEqual({ ids: ["bad", "good"], warnings: [] });
    local.pop();
    expect((await query()).warnings).toHaveLength(1);
    local.push(segment("bad", "/local/bad"));
    pass(1);
    expect(await query()).toEqual({ ids: ["bad", "good"], warnings: [] });
  });
});

describe("a damaged segment of the ingester", () => {
  it("gives way to the copy of the store", async () => {
    const local = [segment("bad", "/local/bad")];
    const { query } = makeHarness({ local, stored: [bad, good] }, ["/local/bad"]);
    expect(await query()).toEqual({ ids: ["bad", "good"], warnings: [] });
  });

  it("does not take the head with it", async () => {
    const head = { kind: "head", id: "head", tenant: "t", minNs: 0n, maxNs: 1n } as SourceRef;
    const { query } = makeHarness({ local: [head, segment("x", "/x")] }, ["/x"]);
    expect((await query()).ids).toEqual(["head"]);
  });
});

describe("other errors", () => {
  const corruptOf = () =>
    new CorruptSegments({ clock: { elapsedMs: () => 0 }, onFound: () => undefined });

  it.each([
    ["of the caller", invalidArgument("bad step")],
    ["of the store", unavailable("the store is away")],
    ["that nobody foresaw", new TypeError("x is undefined")],
  ])("%s are passed on at once", async (_name, error) => {
    let runs = 0;
    const fail = () => {
      runs++;
      return Promise.reject(error);
    };
    await expect(corruptOf().retry(fail)).rejects.toBe(error);
    expect(runs).toBe(1);
  });

  it("of damage that leaving out does not help end at some time", async () => {
    const fail = () => Promise.reject(corruptSegment("x", internal("its checksum is wrong")));
    await expect(corruptOf().retry(fail)).rejects.toThrow("segment x cannot be read");
  });
});
