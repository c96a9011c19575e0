import { describe, expect, it } from "@jest/globals";
import type { HeadRef, SourceRef } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import fc from "fast-check";
import { orderSources } from "./order-sources.js";

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
  orderSources(ingester, store).map(({ ref, side, sequence, older }) =>
    `${sequence} ${ref.id} ${side} ${older.map(({ ref: one }) => one.id).join()}`.trim(),
  );

describe("orderSources", () => {
  it("puts segments by their first row, equal ones by id, and heads last", () => {
    const ingester = [head("h", 0, 1), segment("b", 20, 21)];
    const store = [segment("c", 30, 31), segment("d", 10, 11), segment("a", 10, 10)];
    expect(told(ingester, store)).toEqual([
      "0 a store",
      "1 d store a",
      "2 b ingester",
      "3 c store",
      "4 h ingester",
    ]);
  });

  it("names the earlier sources that overlap in time, ends included", () => {
    const store = [segment("a", 0, 100), segment("b", 10, 20), segment("c", 20, 30)];
    const ingester = [head("h", 25, 40), head("late", 5, 5)];
    expect(told(ingester, [...store, segment("d", 31, 50)])).toEqual([
      "0 a store",
      "1 b store a",
      "2 c store a,b",
      "3 d store a",
      "4 late ingester a",
      "5 h ingester a,c,d",
    ]);
  });

  it("agrees with comparing every pair", () => {
    const span = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 12 }));
    const isHead = fc.boolean();
    fc.assert(
      fc.property(fc.array(fc.tuple(span, isHead), { maxLength: 12 }), (spans) => {
        const refs = spans.map(([[from, length], unsealed], i) =>
          (unsealed ? head : segment)(`${i}`, from, from + length),
        );
        const planned = orderSources(refs, []);
        for (const [i, { ref, older }] of planned.entries()) {
          const want = planned
            .slice(0, i)
            .filter(({ ref: one }) => one.minNs <= ref.maxNs && one.maxNs >= ref.minNs)
            .map(({ ref: one }) => one.id);
          expect(older.map(({ ref: one }) => one.id)).toEqual(want);
        }
      }),
    );
  });
});
