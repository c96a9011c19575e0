import type { RowLabels } from "@skald/logql";
import type { Labels } from "@skald/model";
import fc from "fast-check";
import type { ScanOptions, SelectRequest, SourceRef } from "../../index.js";

export const text = fc.string({ unit: "grapheme", maxLength: 12 });

export const ns = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

export const count = fc.nat(2 ** 31);

export const number = fc.double();

export const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** A value whose optional fields may be there or not. */
export function record<T extends object, Optional extends keyof T = never>(
  required: { [K in Exclude<keyof T, Optional>]: fc.Arbitrary<T[K]> },
  optional?: { [K in Optional]: fc.Arbitrary<NonNullable<T[K]>> },
): fc.Arbitrary<T> {
  const model = { ...required, ...optional };
  return fc
    .record(model as Record<string, fc.Arbitrary<unknown>>, {
      requiredKeys: Object.keys(required),
    })
    .map((value) => ({ ...value }) as T);
}

export const range = record<{ fromNs: bigint; toNs: bigint }>({ fromNs: ns, toNs: ns });

export const matcher = record<SelectRequest["matchers"][number]>({
  name: text,
  op: fc.constantFrom("=", "!=", "=~", "!~"),
  value: text,
});

export const labels: fc.Arbitrary<Labels> = fc
  .array(fc.tuple(text, text), { maxLength: 4 })
  .map((pairs) => ({
    names: pairs.map(([name]) => name),
    values: pairs.map(([, value]) => value),
  }));

export const rowLabels: fc.Arbitrary<RowLabels> = record<RowLabels>({
  labels,
  categories: record<RowLabels["categories"]>({
    stream: labels,
    structuredMetadata: labels,
    parsed: labels,
  }),
});

export const arbitrarySource: fc.Arbitrary<SourceRef> = fc.oneof(
  record<Extract<SourceRef, { kind: "segment" }>, "replaces" | "isApart">(
    {
      kind: fc.constant("segment"),
      id: text,
      tenant: text,
      minNs: ns,
      maxNs: ns,
      location: fc.oneof(
        record<{ kind: "file"; path: string; instance?: string }, "instance">(
          { kind: fc.constant("file"), path: text },
          { instance: text },
        ),
        record<{ kind: "object"; key: string }>({ kind: fc.constant("object"), key: text }),
      ),
      sizeBytes: fc.maxSafeNat(),
    },
    { replaces: fc.array(text, { maxLength: 3 }), isApart: fc.boolean() },
  ),
  record<Extract<SourceRef, { kind: "head" }>, "instance">(
    {
      kind: fc.constant("head"),
      id: text,
      tenant: text,
      minNs: ns,
      maxNs: ns,
      view: text,
      sizeBytes: fc.maxSafeNat(),
    },
    { instance: text },
  ),
);

export const sources = fc.array(arbitrarySource, { maxLength: 3 });

/** Numbers that ascend, none twice. */
export const ascending = fc
  .uniqueArray(u32, { maxLength: 5 })
  .map((list) => Uint32Array.from(list).sort());

/** Whether a scan is one that nobody waits for. */
export const arbitraryBackground = fc.constantFrom({}, { background: true }, { background: false });

export const arbitraryShare: fc.Arbitrary<ScanOptions["share"]> = record<ScanOptions["share"]>({
  tenant: text,
  actors: fc.array(text, { maxLength: 3 }),
  cost: number,
});

export const selectors = fc.array(fc.array(matcher, { maxLength: 2 }), { maxLength: 2 });
