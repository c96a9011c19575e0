import { describe, expect, it } from "@jest/globals";
import type { HeadRef, SourceRef } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { headId } from "@skald/storage";
import fc from "fast-check";
import { orderSources, type PlannedSource } from "./order-sources.js";

const segment = (id: string, from: number, to: number): SegmentRef => ({
  kind: "segment",
  id,
  tenant: "t",
  minNs: BigInt(from),
  maxNs: BigInt(to),
  sizeBytes: 1,
  location: { kind: "file", path: id },
});
const head = (id: string, from: number, to: number): HeadRef => ({
  kind: "head",
  id,
  tenant: "t",
  minNs: BigInt(from),
  maxNs: BigInt(to),
  view: "v",
  sizeBytes: 1,
});
const told = (ingester: SourceRef[], store: SourceRef[]) =>
  orderSources(ingester, store).map((planned) => {
    const { ref, side } = planned;
    return `${ref.id} ${side} ${comparedWith(planned).join()}`.trim();
  });

/** Ids of the earlier sources that it is compared with. */
function comparedWith({ ref, older, meets }: PlannedSource): string[] {
  const group = meets?.sources ?? [];
  const before = group.slice(0, Math.max(0, group.indexOf(ref as SegmentRef)));
  return [...before.map(({ id }) => id), ...older.map(({ ref: one }) => one.id)];
}

describe("segments that meet", () => {
  const groupsOf = (store: SegmentRef[]) => {
    const groups = new Set(orderSources([], store).map(({ meets }) => meets));
    groups.delete(undefined);
    return [...groups].map((group) => [group!.sources.length, group!.wantedFrom]);
  };
  const chain = (count: number, length: number) =>
    Array.from({ length: count }, (_, i) =>
      segment(String(i).padStart(4, "0"), 10 * i, 10 * i + length),
    );

  it("are in small groups where few reach from one into the next", () => {
    expect(groupsOf(chain(24, 10))).toEqual([
      [8, 0],
      [9, 1],
      [9, 1],
    ]);
  });

  it("are in one group where all meet", () => {
    expect(groupsOf(chain(100, 1000))).toEqual([[100, 0]]);
  });

  it("are in none where none do", () => {
    expect(groupsOf(chain(100, 9))).toEqual([]);
  });

  it("are in none where they are said to be apart, but for those that meet one that is not", () => {
    const apart = (ref: SegmentRef) => ({ ...ref, isApart: true });
    const all = chain(20, 1000).map(apart);
    expect(groupsOf(all)).toEqual([]);
    expect(groupsOf([segment("first", 0, 9), ...all])).toEqual([[2, 0]]);
    const chained = chain(20, 14).map((ref, i) => (i === 10 ? ref : apart(ref)));
    expect(groupsOf(chained)).toEqual([[3, 0]]);
    expect(groupsOf([...all, segment("last", 1180, 2000)])).toEqual([[3, 0]]);
  });

  it("are in larger groups beside a large one", () => {
    const large = { ...segment("all", 0, 10_000), sizeBytes: 1_000_000 };
    expect(groupsOf([large, ...chain(300, 9)])).toEqual([
      [8, 0],
      [129, 1],
      [129, 1],
      [38, 1],
    ]);
  });
});

describe("order of arrival", () => {
  const made = (ms: number) => headId("i", ms, "0123abcd", 0);
  const sequences = (ingester: SourceRef[], store: SourceRef[]) =>
    orderSources(ingester, store)
      .sort((a, b) => a.sequence - b.sequence)
      .map(({ ref }) => ref.id);

  it("is that of the heads that sources were, whatever their times and wherever they are now", () => {
    const sealed = segment(made(1), 5, 20);
    const growing = head(made(4), 0, 30);
    const want = [1, 2, 3, 4].map(made);
    expect(sequences([head(made(3), 7, 9), growing], [segment(made(2), 0, 9), sealed])).toEqual(
      want,
    );
    expect(sequences([head(made(2), 0, 9), growing], [segment(made(3), 7, 9), sealed])).toEqual(
      want,
    );
    expect(sequences([head(made(4), 0, 30)], [segment(made(3), 7, 9)])).toEqual([3, 4].map(made));
  });
});

describe("orderSources", () => {
  it("puts segments by their first row, equal ones by id, and heads last", () => {
    const ingester = [head("h", 0, 1), segment("b", 20, 21)];
    const store = [segment("c", 30, 31), segment("d", 10, 11), segment("a", 10, 10)];
    expect(told(ingester, store)).toEqual([
      "a store",
      "d store a",
      "b ingester",
      "c store",
      "h ingester",
    ]);
  });

  it("names the earlier sources that overlap in time, ends included", () => {
    const store = [segment("a", 0, 100), segment("b", 10, 20), segment("c", 20, 30)];
    const ingester = [head("h", 25, 40), head("late", 5, 5)];
    expect(told(ingester, [...store, segment("d", 31, 50)])).toEqual([
      "a store",
      "b store a",
      "c store a,b",
      "d store a,b,c",
      "late ingester a",
      "h ingester a,c,d",
    ]);
  });

  it("agrees with comparing every pair", () => {
    const span = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 12 }));
    const isHead = fc.boolean();
    fc.assert(
      fc.property(fc.array(fc.tuple(span, isHead), { maxLength: 40, size: "max" }), (spans) => {
        const refs = spans.map(([[from, length], unsealed], i) =>
          (unsealed ? head : segment)(`${i}`, from, from + length),
        );
        const planned = orderSources(refs, []);
        for (const [i, source] of planned.entries()) {
          const { ref, meets } = source;
          const want = planned
            .slice(0, i)
            .filter(({ ref: one }) => one.minNs <= ref.maxNs && one.maxNs >= ref.minNs)
            .map(({ ref: one }) => one.id);
          // A group may have more, which are then found to share nothing.
          const compared = comparedWith(source);
          expect(
            meets === undefined ? compared : compared.filter((id) => want.includes(id)),
          ).toEqual(want);
          expect(meets === undefined || want.length > 0).toBe(true);
        }
      }),
    );
  });
});
