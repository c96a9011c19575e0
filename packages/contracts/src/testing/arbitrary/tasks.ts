import { defaultQueryLimits, type LeafPlan, type Plan, parseQuery, planQuery } from "@skald/logql";
import { randomQueryTexts } from "@skald/logql/testing/query-texts";
import fc from "fast-check";
import type {
  CatalogRequest,
  CountRequest,
  DeletesRequest,
  DigestTask,
  DuplicateTask,
  LabelTask,
  MatchedRows,
  MatchTask,
  MinuteDigests,
  PlacedHashes,
  RowFilter,
  RowHashTask,
  RowMask,
  ScanPlan,
  ScanTask,
  Selection,
  SelectRequest,
  SkippedMinutes,
  SourceRef,
  StreamMinutes,
  TaskSource,
  VolumePlan,
  VolumeRequest,
  VolumeTask,
  WindowDigests,
} from "../../index.js";
import {
  arbitraryShare,
  arbitrarySource,
  ascending,
  count,
  matcher,
  ns,
  number,
  range,
  record,
  selectors,
  sources,
  text,
  u32,
} from "./common.js";

export const arbitraryMask: fc.Arbitrary<RowMask> = fc
  .uniqueArray(u32, { maxLength: 4 })
  .chain((blocks) =>
    record<RowMask>({
      blocks: fc.constant(Uint32Array.from(blocks).sort()),
      rows: fc.array(ascending, { minLength: blocks.length, maxLength: blocks.length }),
    }),
  );

/** Plans of queries that the parser can give. */
export function arbitraryPlan(seed: number): fc.Arbitrary<Plan> {
  const plans = randomQueryTexts(seed, 300).flatMap((query) => {
    const params = {
      startNs: 7_000n,
      endNs: 10n ** 18n,
      stepNs: 10n ** 12n,
      limit: 100,
      intervalNs: 0n,
    };
    try {
      return [
        planQuery(parseQuery(query), { ...params, direction: "backward" }, defaultQueryLimits),
      ];
    } catch {
      // A query that cannot be planned.
      return [];
    }
  });
  return fc.constantFrom(...plans);
}

function arbitraryScanPlan(seed: number): fc.Arbitrary<ScanPlan> {
  return arbitraryPlan(seed)
    .chain((plan) =>
      plan.kind === "log" || plan.leaves.length === 0
        ? fc.constant(plan as ScanPlan)
        : fc.constantFrom(...plan.leaves),
    )
    .filter((plan) => !("leaves" in plan));
}

export function arbitraryScanTask(seed: number): fc.Arbitrary<ScanTask> {
  return record<ScanTask, "boundNs">(
    {
      plan: arbitraryScanPlan(seed),
      sources: fc.array(scanSource, { maxLength: 3 }),
    },
    { boundNs: ns },
  );
}

const taskSource = record<TaskSource>({ ref: arbitrarySource });
const taskSources = fc.array(taskSource, { maxLength: 3 });

const streamMinutes: fc.Arbitrary<StreamMinutes> = fc
  .array(fc.tuple(fc.maxSafeNat(), fc.array(u32, { maxLength: 3 })), { maxLength: 3 })
  .map((lists) => ({
    streams: Float64Array.from(lists, ([stream]) => stream),
    counts: Uint32Array.from(lists, ([, { length }]) => length),
    minutes: Uint32Array.from(lists.flatMap(([, minutes]) => minutes)),
  }));

export const arbitraryDigestTask: fc.Arbitrary<DigestTask<SourceRef>> = record<
  DigestTask<SourceRef>
>({
  fromNs: ns,
  toNs: ns,
  sources: taskSources,
  matchers: fc.array(matcher, { maxLength: 2 }),
  minutesEach: fc.nat(60),
});

export const arbitraryRowHashTask: fc.Arbitrary<RowHashTask<SourceRef>> = record<
  RowHashTask<SourceRef>
>({ fromNs: ns, toNs: ns, sources: taskSources, wanted: streamMinutes });

export const arbitraryDigests: fc.Arbitrary<MinuteDigests> = streamMinutes.map((lists) => ({
  ...lists,
  rows: lists.minutes.map((_, i) => i + 1),
  sums: Uint32Array.from([...lists.minutes, ...lists.minutes]),
}));

export const arbitraryHashes: fc.Arbitrary<PlacedHashes> = fc
  .array(u32, { maxLength: 4 })
  .map((list) => {
    const numbers = Uint32Array.from(list);
    const hashes = Uint32Array.from([...list, ...list]);
    return { minute: numbers, source: numbers, block: numbers, row: numbers, hashes };
  });

const skipped: fc.Arbitrary<SkippedMinutes> = record<SkippedMinutes>({
  all: ascending.map((list) => list.subarray(list.length % 2)),
  some: streamMinutes,
});

const scanSource = record<ScanTask["sources"][number], "part" | "mask" | "tenantLabel" | "skipped">(
  { ref: arbitrarySource, sequence: fc.maxSafeNat() },
  {
    part: fc.constantFrom({ from: 0, to: 1 }, { from: 0.25, to: 0.5 }),
    mask: arbitraryMask,
    tenantLabel: text,
    skipped,
  },
);

const part = fc.nat(7).map((index) => ({ index, count: 8 }));

export const arbitraryLabelTask: fc.Arbitrary<LabelTask> = record<LabelTask, "part" | "label">(
  { fromNs: ns, toNs: ns, sources: taskSources, selectors },
  { part, label: text },
);

export const arbitraryDuplicateTask: fc.Arbitrary<DuplicateTask> = record<DuplicateTask, "range">(
  { sources: fc.array(taskSource, { minLength: 1, maxLength: 3 }) },
  { range },
);

export function arbitraryFilter(seed: number): fc.Arbitrary<RowFilter> {
  const logs = arbitraryPlan(seed).filter((plan) => plan.kind === "log");
  return record<RowFilter, "id" | "unless">(
    { fromNs: ns, toNs: ns, log: logs.map(({ log }) => log), nowNs: ns },
    { id: text, unless: selectors },
  );
}

export function arbitraryMatchTask(seed: number): fc.Arbitrary<MatchTask> {
  return record<MatchTask, "range">(
    {
      sources: taskSource.map((source) => [source]),
      filters: fc.array(arbitraryFilter(seed), { maxLength: 3 }),
    },
    { range },
  );
}

export const arbitraryMatched: fc.Arbitrary<MatchedRows> = record<MatchedRows>({
  mask: arbitraryMask,
  rowCount: fc.maxSafeNat(),
});

export const arbitraryDeletesRequest: fc.Arbitrary<DeletesRequest> = record<DeletesRequest>({
  tenant: text,
  fromNs: ns,
  toNs: ns,
});

export const arbitraryCatalogRequest: fc.Arbitrary<CatalogRequest> = record<
  CatalogRequest,
  "matchers" | "held" | "maxAgeMs"
>(
  { tenant: text, fromNs: ns, toNs: ns },
  {
    matchers: fc.array(matcher, { maxLength: 3 }),
    held: fc.array(text, { maxLength: 3 }),
    maxAgeMs: fc.nat(),
  },
);

export function arbitraryCountRequest(seed: number): fc.Arbitrary<CountRequest> {
  const leaves = arbitraryScanPlan(seed).filter((plan) => !("log" in plan));
  const counting = record<CountRequest["counting"], "tenantLabel" | "heldBusy">(
    { plan: leaves as fc.Arbitrary<LeafPlan>, busy: fc.array(range, { maxLength: 3 }) },
    { tenantLabel: text, heldBusy: fc.nat() },
  );
  return fc
    .tuple(arbitraryCatalogRequest, counting)
    .map(([request, asked]) => ({ ...request, counting: asked }));
}

const volumePlan = {
  fromNs: ns,
  toNs: ns,
  matchers: fc.array(matcher, { maxLength: 3 }),
  groupBy: record<VolumePlan["groupBy"], "names">(
    { kind: fc.constantFrom("series", "names") },
    { names: fc.array(text, { maxLength: 3 }) },
  ),
  buckets: record<VolumePlan["buckets"]>({ firstNs: ns, stepNs: ns, count }),
  maxGroups: number,
  countsStreams: fc.boolean(),
};

export const arbitraryVolumeTask: fc.Arbitrary<VolumeTask> = record<VolumeTask>({
  plan: record<VolumePlan>(volumePlan),
  sources: fc.array(scanSource, { maxLength: 3 }),
});

export const arbitraryVolumeRequest: fc.Arbitrary<VolumeRequest> = record<VolumeRequest, "actors">(
  { ...volumePlan, tenants: fc.array(text, { minLength: 1, maxLength: 3 }) },
  { actors: fc.array(text, { maxLength: 3 }) },
);

export const arbitrarySelect: fc.Arbitrary<SelectRequest> = record<
  SelectRequest,
  "share" | "compare" | "withLeaving"
>(
  {
    tenant: text,
    fromNs: ns,
    toNs: ns,
    matchers: fc.array(matcher, { maxLength: 3 }),
  },
  {
    share: arbitraryShare,
    compare: fc.record({ windows: fc.array(range, { maxLength: 3 }), minutesEach: fc.nat(60) }),
    withLeaving: fc.boolean(),
  },
);

const windowDigests: fc.Arbitrary<WindowDigests> = record<WindowDigests, "instance">(
  { fromNs: ns, toNs: ns, digests: arbitraryDigests, sources: fc.nat(9) },
  { instance: text },
);

export const arbitrarySelection: fc.Arbitrary<Selection> = record<
  Selection,
  "view" | "completeFromNs" | "storedAgoMs" | "compared"
>(
  { sources },
  {
    view: text,
    completeFromNs: ns,
    storedAgoMs: fc.nat(),
    compared: fc.record({ windows: fc.array(windowDigests, { maxLength: 2 }) }),
  },
);
