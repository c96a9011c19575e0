import { describe, expect, it } from "@jest/globals";
import type { CountRequest, Ingester } from "@skald/contracts";
import type { LeafPlan } from "@skald/logql";
import { errorCodeOf, internal, type SegmentRef, unavailable } from "@skald/model";
import { CorruptSegments } from "./corrupt-segments.js";
import { type Search, SourceFinder } from "./source-finder.js";

const { signal } = new AbortController();
const local: SegmentRef = {
  ...{ kind: "segment", id: "local", tenant: "t", minNs: 20n, maxNs: 30n, sizeBytes: 1 },
  location: { kind: "file", path: "local" },
};

it("uses the store's segment instead of those that it has replaced", async () => {
  const other: SegmentRef = { ...local, id: "other" };
  const merged: SegmentRef = { ...local, id: "merged", replaces: ["local"] };
  const ingester = { select: async () => ({ sources: [local, other] }) } as unknown as Ingester;
  const corrupt = new CorruptSegments({ clock: { elapsedMs: () => 0 }, onFound: () => {} });
  const asked: unknown[] = [];
  const list = async (request: unknown) => {
    asked.push(request);
    return [merged];
  };
  const finder = new SourceFinder({ ingester, catalog: { list }, corrupt });
  const search: Search = { fresh: false, views: [], missing: new Set(), lists: [] };
  const request = { tenant: "t", matchers: [], fromNs: 0n, toNs: 40n };
  const found = await finder.list(request, search, signal);
  expect(found.map(({ ref }) => ref.id)).toEqual(["merged", "other"]);
  expect(asked).toEqual([{ ...request, held: ["local", "other"] }]);
});

it.each([
  ["one that has what the ingester dropped", false, 300, { maxAgeMs: 300 }],
  ["a new one when segments had moved", true, 300, { maxAgeMs: 0 }],
  ["any when the ingester has all that it stored lately", false, undefined, {}],
])("asks for a listing: %s", async (_, fresh, storedAgoMs, want) => {
  const selection = { sources: [], ...(storedAgoMs === undefined ? {} : { storedAgoMs }) };
  const ingester = { select: async () => selection } as unknown as Ingester;
  const corrupt = new CorruptSegments({ clock: { elapsedMs: () => 0 }, onFound: () => {} });
  const asked: unknown[] = [];
  const list = async (request: unknown) => {
    asked.push(request);
    return [];
  };
  const finder = new SourceFinder({ ingester, catalog: { list }, corrupt });
  const request = { tenant: "t", matchers: [], fromNs: 0n, toNs: 40n };
  await finder.list(request, { fresh, views: [], missing: new Set(), lists: [] }, signal);
  expect(asked).toEqual([{ ...request, held: [], ...want }]);
});

it("does not scan what the ingester has of segments that the catalog has counted", async () => {
  const ids = ["merged away", "counted", "left", "only here"];
  const sources = ids.map((id): SegmentRef => ({ ...local, id }));
  const ingester = { select: async () => ({ sources }) } as unknown as Ingester;
  const corrupt = new CorruptSegments({ clock: { elapsedMs: () => 0 }, onFound: () => {} });
  const asked: CountRequest[] = [];
  const list = () => Promise.reject(new Error("not asked"));
  const counting = async (request: CountRequest) => {
    asked.push(request);
    const left: SegmentRef = { ...local, id: "left", location: { kind: "object", key: "left" } };
    const known = ["merged away", "counted", "left"];
    return { segments: [left], counted: [], countedSegments: 2, known };
  };
  const finder = new SourceFinder({ ingester, catalog: { list, count: counting }, corrupt });
  const search: Search = { fresh: false, views: [], missing: new Set(), lists: [] };
  const share = { tenant: "t", actors: [], cost: 0 };
  const count = { plan: {} as LeafPlan, share, counted: [], segments: 0 };
  const request = { tenant: "t", matchers: [], fromNs: 0n, toNs: 40n };
  const selectors = [{ tenant: "t", matchers: [] }];
  const found = await finder.listAll(selectors, request, search, signal, count);
  expect(found.map(({ ref, side }) => `${ref.id} ${side}`)).toEqual([
    "left ingester",
    "only here ingester",
  ]);
  const [{ held, counting: told } = { held: [], counting: undefined }] = asked;
  expect([held, told?.heldBusy, told?.busy.length]).toEqual([ids, 4, 4]);
});

describe("a store that cannot be listed", () => {
  const down = unavailable("the store is down");
  it.each([
    ["a query for what the ingester has all of is answered", 20n, down, "local"],
    ["one for older rows fails", 19n, down, "unavailable"],
    ["so does one that nothing is known of", undefined, down, "unavailable"],
    ["other errors are not forgiven", 20n, internal("a bug"), "internal"],
  ])("%s", async (_, completeFromNs, error, want) => {
    const known = completeFromNs === undefined ? {} : { completeFromNs: 20n };
    const ingester = {
      select: async () => ({ sources: [local], ...known }),
    } as Partial<Ingester> as Ingester;
    const corrupt = new CorruptSegments({ clock: { elapsedMs: () => 0 }, onFound: () => {} });
    const catalog = { list: () => Promise.reject(error) };
    const finder = new SourceFinder({ ingester, catalog, corrupt });
    const search: Search = { fresh: false, views: [], missing: new Set(), lists: [] };
    const request = { tenant: "t", matchers: [], fromNs: completeFromNs ?? 20n, toNs: 40n };
    const found = await finder.list(request, search, signal).then(
      (sources) => sources.map(({ ref }) => ref.id).join(),
      (failure: unknown) => errorCodeOf(failure),
    );
    expect([found, search.unlisted ?? false]).toEqual([want, want === "local"]);
  });
});
