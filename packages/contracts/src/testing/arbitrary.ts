import {
  defaultQueryLimits,
  type LogPartial,
  type LogResult,
  type MetricPartial,
  type Plan,
  parseQuery,
  planQuery,
  type QueryResult,
  type RowLabels,
} from "@skald/logql";
import { randomQueryTexts } from "@skald/logql/testing/query-texts";
import {
  type BatchSource,
  type BytesColumn,
  emptyReadStats,
  type Labels,
  type OtlpAttributeRule,
  type OtlpReading,
  paddingBytes,
} from "@skald/model";
import { makeBatch, type TestStream } from "@skald/testkit";
import fc from "fast-check";
import type {
  CatalogRequest,
  DeletesRequest,
  DigestTask,
  DuplicateTask,
  FoundPatterns,
  LabelTask,
  MatchedRows,
  MatchTask,
  MinuteDigests,
  Pattern,
  PatternsRequest,
  PlacedHashes,
  PushOutcome,
  PushRequest,
  QueryAnswer,
  QueryRequest,
  RowFilter,
  RowHashTask,
  RowMask,
  SampledLines,
  RuleGroupStatus,
  RuleState,
  ScanOptions,
  ScanOutcome,
  ScanPlan,
  ScanTask,
  Selection,
  SelectRequest,
  SkippedMinutes,
  SourceRef,
  StreamColumns,
  StreamMinutes,
  StreamsRequest,
  TailRequest,
  TailRows,
  VolumeAnswer,
  VolumeOutcome,
  VolumePlan,
  VolumeRequest,
  VolumeTask,
} from "../index.js";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const ns = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const count = fc.nat(2 ** 31);
const number = fc.double();
const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** A value whose optional fields may be there or not. */
function record<T extends object, Optional extends keyof T = never>(
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

const range = record<{ fromNs: bigint; toNs: bigint }>({ fromNs: ns, toNs: ns });
const matcher = record<SelectRequest["matchers"][number]>({
  name: text,
  op: fc.constantFrom("=", "!=", "=~", "!~"),
  value: text,
});
const labels: fc.Arbitrary<Labels> = fc
  .array(fc.tuple(text, text), { maxLength: 4 })
  .map((pairs) => ({
    names: pairs.map(([name]) => name),
    values: pairs.map(([, value]) => value),
  }));
const rowLabels: fc.Arbitrary<RowLabels> = record<RowLabels>({
  labels,
  categories: record<RowLabels["categories"]>({
    stream: labels,
    structuredMetadata: labels,
    parsed: labels,
  }),
});

export const arbitrarySource: fc.Arbitrary<SourceRef> = fc.oneof(
  record<Extract<SourceRef, { kind: "segment" }>, "replaces">(
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
    { replaces: fc.array(text, { maxLength: 3 }) },
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
const sources = fc.array(arbitrarySource, { maxLength: 3 });

/** Numbers that ascend, none twice. */
const ascending = fc
  .uniqueArray(u32, { maxLength: 5 })
  .map((list) => Uint32Array.from(list).sort());

export const arbitraryMask: fc.Arbitrary<RowMask> = fc
  .uniqueArray(u32, { maxLength: 4 })
  .chain((blocks) =>
    record<RowMask>({
      blocks: fc.constant(Uint32Array.from(blocks).sort()),
      rows: fc.array(ascending, { minLength: blocks.length, maxLength: blocks.length }),
    }),
  );

/** Whether a scan is one that nobody waits for. */
export const arbitraryBackground = fc.constantFrom({}, { background: true }, { background: false });

export const arbitraryShare: fc.Arbitrary<ScanOptions["share"]> = record<ScanOptions["share"]>({
  tenant: text,
  actors: fc.array(text, { maxLength: 3 }),
  cost: number,
});

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

export function arbitraryScanPlan(seed: number): fc.Arbitrary<ScanPlan> {
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
  sources,
  matchers: fc.array(matcher, { maxLength: 2 }),
  minutesEach: fc.nat(60),
});

export const arbitraryRowHashTask: fc.Arbitrary<RowHashTask<SourceRef>> = record<
  RowHashTask<SourceRef>
>({ fromNs: ns, toNs: ns, sources, wanted: streamMinutes });

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

const selectors = fc.array(fc.array(matcher, { maxLength: 2 }), { maxLength: 2 });
const part = fc.nat(7).map((index) => ({ index, count: 8 }));

export const arbitraryLabelTask: fc.Arbitrary<LabelTask> = record<LabelTask, "part" | "label">(
  { fromNs: ns, toNs: ns, sources, selectors },
  { part, label: text },
);

export const arbitraryDuplicateTask: fc.Arbitrary<DuplicateTask> = record<DuplicateTask, "range">(
  { newer: arbitrarySource, older: sources },
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
    { source: arbitrarySource, filters: fc.array(arbitraryFilter(seed), { maxLength: 3 }) },
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
  "matchers" | "held" | "fresh"
>(
  { tenant: text, fromNs: ns, toNs: ns },
  {
    matchers: fc.array(matcher, { maxLength: 3 }),
    held: fc.array(text, { maxLength: 3 }),
    fresh: fc.boolean(),
  },
);

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

export const arbitrarySelect: fc.Arbitrary<SelectRequest> = record<SelectRequest>({
  tenant: text,
  fromNs: ns,
  toNs: ns,
  matchers: fc.array(matcher, { maxLength: 3 }),
});

export const arbitrarySelection: fc.Arbitrary<Selection> = record<
  Selection,
  "view" | "completeFromNs"
>({ sources }, { view: text, completeFromNs: ns });

export const arbitraryPushOutcome: fc.Arbitrary<PushOutcome> = record<PushOutcome>({
  refusals: fc.array(
    record<PushOutcome["refusals"][number]>({
      status: fc.constantFrom(400, 429),
      reason: text,
      message: text,
      entries: count,
      bytes: fc.maxSafeNat(),
    }),
    { maxLength: 3 },
  ),
});

const testStream: fc.Arbitrary<TestStream> = fc.record({
  labels: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { maxKeys: 3 }),
  rows: fc.array(
    fc.record({
      ns: fc.bigInt({ min: 0n, max: 2n ** 62n }),
      line: text,
      metadata: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { maxKeys: 2 }),
      level: fc.constantFrom(0, 3, 255),
    }),
    { maxLength: 6 },
  ),
});

const sourceFields = {
  format: fc.constantFrom<BatchSource["format"][]>(
    "protobuf",
    "json",
    "legacy_json",
    "otlp_protobuf",
    "otlp_json",
  ),
  encoding: fc.constantFrom<BatchSource["encoding"][]>(
    "identity",
    "gzip",
    "deflate",
    "zstd",
    "lz4",
  ),
  dropped: ascending,
};
const otlpRules = fc.array(
  record<OtlpAttributeRule>({
    action: fc.constantFrom("index_label", "structured_metadata", "drop"),
    attributes: fc.array(text, { maxLength: 3 }),
    regex: text,
  }),
  { maxLength: 3 },
);
const otlpReading = record<OtlpReading>({
  mapping: record<OtlpReading["mapping"]>({
    resource: otlpRules,
    scope: otlpRules,
    log: otlpRules,
    severityTextAsLabel: fc.boolean(),
  }),
  receivedMs: number,
});

export const arbitraryPush: fc.Arbitrary<PushRequest> = fc
  .tuple(
    text,
    fc.array(testStream, { maxLength: 4 }),
    fc.option(record<Omit<BatchSource, "body">, "otlp">(sourceFields, { otlp: otlpReading })),
    fc.nat(300),
  )
  .map(([tenant, streams, source, unused]) => {
    const batch = makeBatch(streams);
    // Bytes that no row refers to, as the rest of a body is.
    const bytes = new Uint8Array(batch.bytes.length + unused);
    bytes.set(batch.bytes);
    const body = new TextEncoder().encode(`body of ${tenant}`);
    return {
      tenant,
      batch: {
        ...batch,
        bytes,
        ...(source === null ? {} : { source: { ...source, body } }),
      },
    };
  });

function column(lines: readonly string[]): BytesColumn {
  const bytes = Buffer.from(lines.join(""));
  let end = 0;
  const padded = new Uint8Array(bytes.length + paddingBytes);
  padded.set(bytes);
  return {
    bytes: padded.subarray(0, bytes.length),
    offsets: Uint32Array.from(["", ...lines], (line) => (end += Buffer.byteLength(line))),
  };
}

const rows = fc.array(
  fc.tuple(text, fc.array(fc.maxSafeInteger(), { minLength: 5, maxLength: 5 })),
  {
    maxLength: 8,
  },
);
const stats = fc.array(number, { minLength: 19, maxLength: 19 }).map((numbers) => {
  const keys = Object.keys(emptyReadStats());
  return Object.fromEntries(keys.map((key, i) => [key, numbers[i]])) as unknown as ReturnType<
    typeof emptyReadStats
  >;
});

const logPartial: fc.Arbitrary<LogPartial> = fc
  .tuple(rows, fc.array(rowLabels, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([list, sets, truncated]) => ({
    rowCount: list.length,
    places: {
      day: Float64Array.from(list, ([, place]) => place[0]!),
      time: Float64Array.from(list, ([, place]) => place[1]!),
      stream: Float64Array.from(list, ([, place]) => place[2]!),
      sequence: Float64Array.from(list, ([, place]) => place[3]!),
      row: Float64Array.from(list, ([, place]) => place[4]!),
    },
    labelSet: Uint32Array.from(list, (_, i) => i % sets.length),
    lines: column(list.map(([line]) => line)),
    labels: sets,
    truncated,
  }));

const metricPartial: fc.Arbitrary<MetricPartial> = fc
  .tuple(
    fc.constantFrom("count", "sum", "moments", "last", "samples"),
    fc.array(fc.tuple(labels, fc.array(fc.tuple(u32, number, number), { maxLength: 4 })), {
      maxLength: 4,
    }),
  )
  .map(([mode, series]) => {
    const cells = series.flatMap(([, own]) => own);
    let end = 0;
    const none = new Float64Array(0);
    return {
      mode: mode as MetricPartial["mode"],
      labels: series.map(([own]) => own),
      start: Uint32Array.from([0, ...series.map(([, own]) => (end += own.length))]),
      bucket: Uint32Array.from(cells, ([bucket]) => bucket),
      count: mode === "samples" ? none : Float64Array.from(cells, ([, rowCount]) => rowCount),
      value: mode === "count" ? none : Float64Array.from(cells, ([, , value]) => value),
      extra: mode === "moments" ? Float64Array.from(cells, ([, , value]) => value) : none,
      stream: mode === "last" ? Float64Array.from(cells, ([bucket]) => bucket) : none,
    };
  });

export const arbitraryOutcome: fc.Arbitrary<ScanOutcome> = fc
  .tuple(
    fc.oneof<fc.Arbitrary<LogPartial | MetricPartial>[]>(logPartial, metricPartial),
    stats,
    count,
  )
  .map(([partial, own, streams]) => ({ partial, stats: own, streams }) as ScanOutcome);

export const arbitraryColumns: fc.Arbitrary<StreamColumns> = fc
  .array(fc.array(fc.tuple(text, text), { maxLength: 3 }), { maxLength: 4 })
  .map((streams) => {
    const pairs = streams.flat();
    let end = 0;
    return {
      hashes: Uint32Array.from({ length: streams.length * 2 }, (_, i) => i * 77),
      starts: Uint32Array.from([0, ...streams.map((own) => (end += own.length))]),
      pairs: Uint32Array.from(pairs, (_, i) => i),
      names: pairs.map(([name]) => name),
      pairNames: Uint32Array.from(pairs, (_, i) => i),
      values: column(pairs.map(([, value]) => value)),
      valueHashes: Uint32Array.from({ length: pairs.length * 2 }, (_, i) => i * 99),
    };
  });

export function arbitraryQueryRequest(seed: number): fc.Arbitrary<QueryRequest> {
  return record<QueryRequest, "actors">(
    {
      tenants: fc.array(text, { minLength: 1, maxLength: 3 }),
      plan: arbitraryPlan(seed),
      limits: record<QueryRequest["limits"]>({ maxBytesRead: number, maxMemoryBytes: number }),
    },
    { actors: fc.array(text, { maxLength: 3 }) },
  );
}

export const arbitraryStreamsRequest: fc.Arbitrary<StreamsRequest> = record<
  StreamsRequest,
  "actors"
>(
  { fromNs: ns, toNs: ns, tenants: fc.array(text, { maxLength: 3 }), selectors },
  { actors: fc.array(text, { maxLength: 3 }) },
);

const warnings = fc.array(text, { maxLength: 2 });
const logResult: fc.Arbitrary<LogResult> = logPartial.map(
  ({ rowCount, places, labelSet, lines, labels: sets }) => ({
    kind: "streams" as const,
    rowCount,
    timestamps: BigInt64Array.from(places.time, BigInt),
    labelSet,
    lines,
    labels: sets,
    warnings: [],
  }),
);
const result: fc.Arbitrary<QueryResult | LogResult> = fc.oneof(
  record<Extract<QueryResult, { kind: "scalar" }>>({
    kind: fc.constant("scalar"),
    atNs: ns,
    value: number,
    warnings,
  }),
  record<Extract<QueryResult, { kind: "vector" }>>({
    kind: fc.constant("vector"),
    atNs: ns,
    samples: fc.array(record<{ labels: Labels; value: number }>({ labels, value: number }), {
      maxLength: 3,
    }),
    warnings,
  }),
  record<Extract<QueryResult, { kind: "matrix" }>>({
    kind: fc.constant("matrix"),
    points: record<{ startNs: bigint; stepNs: bigint; count: number }>({
      startNs: ns,
      stepNs: ns,
      count: fc.constant(100),
    }),
    series: fc.array(
      fc
        .tuple(labels, fc.array(fc.tuple(fc.nat(99), number), { maxLength: 4 }))
        .map(([own, at]) => ({
          labels: own,
          at: Uint32Array.from(at, ([point]) => point),
          values: Float64Array.from(at, ([, value]) => value),
        })),
      { maxLength: 3 },
    ),
    warnings,
  }),
  logResult,
);

const queryStats = record<QueryAnswer["stats"]>({
  ingester: stats,
  store: stats,
  ingestersReached: number,
  streams: number,
  execSeconds: number,
  queueSeconds: number,
  entriesReturned: number,
  shards: number,
});

export const arbitraryQueryAnswer: fc.Arbitrary<QueryAnswer> = record<QueryAnswer>({
  result,
  stats: queryStats,
});

const cells = fc.array(fc.tuple(labels, u32, number, number), { maxLength: 5 }).map((list) => ({
  groups: list.map(([own]) => own),
  group: Uint32Array.from(list, (_, i) => i),
  bucket: Uint32Array.from(list, ([, bucket]) => bucket),
  rows: Float64Array.from(list, ([, , rowCount]) => rowCount),
  bytes: Float64Array.from(list, ([, , , bytes]) => bytes),
  blocks: list.length,
}));

export const arbitraryVolumes: fc.Arbitrary<VolumeOutcome> = fc
  .tuple(cells, stats, fc.array(fc.tuple(u32, u32), { maxLength: 4 }))
  .map(([own, read, streams]) => ({
    ...own,
    stats: read,
    streams: Uint32Array.from(streams.flat()),
  }));

export const arbitraryVolumeAnswer: fc.Arbitrary<VolumeAnswer> = fc
  .tuple(cells, queryStats, number, warnings)
  .map(([own, read, streamCount, warned]) => ({
    ...own,
    streamCount,
    stats: read,
    warnings: warned,
  }));

export function arbitraryTailRequest(seed: number): fc.Arbitrary<TailRequest> {
  const logs = arbitraryPlan(seed).filter((plan) => plan.kind === "log");
  return record<TailRequest>({
    tenant: text,
    matchers: fc.array(matcher, { maxLength: 3 }),
    stages: logs.map(({ log }) => log.stages),
  });
}

export const arbitraryTailRows: fc.Arbitrary<TailRows> = record<TailRows, "rows">(
  {
    dropped: fc.array(record<TailRows["dropped"][number]>({ timestampNs: ns, labels }), {
      maxLength: 3,
    }),
  },
  { rows: logResult },
);

export const arbitraryPatternsRequest: fc.Arbitrary<PatternsRequest> = record<PatternsRequest>({
  tenant: text,
  matchers: fc.array(matcher, { maxLength: 3 }),
  fromNs: ns,
  toNs: ns,
  stepSeconds: fc.integer({ min: 1, max: 100_000 }),
});

const pattern: fc.Arbitrary<Pattern> = record<Pattern>({
  pattern: text,
  level: text,
  samples: fc.array(fc.tuple(count, count), { maxLength: 3 }),
});

export const arbitraryFoundPatterns: fc.Arbitrary<FoundPatterns> = record<FoundPatterns>({
  patterns: fc.array(pattern, { maxLength: 3 }),
  lines: count,
});

export const arbitrarySampledLines: fc.Arbitrary<SampledLines> = fc
  .record({
    tenant: text,
    weight: count,
    streams: fc.array(text, { minLength: 1, maxLength: 3 }),
    levels: fc.array(text, { minLength: 1, maxLength: 3 }),
    lines: fc.array(fc.tuple(u32, u32, count, fc.uint8Array({ maxLength: 9 })), { maxLength: 4 }),
  })
  .map(({ lines, streams, levels, ...rest }) => {
    let end = 0;
    return {
      ...{ ...rest, streams, levels },
      streamOf: Uint32Array.from(lines, ([stream]) => stream % streams.length),
      levelOf: Uint32Array.from(lines, ([, level]) => level % levels.length),
      seconds: Float64Array.from(lines, ([, , second]) => second),
      ends: Uint32Array.from(lines, ([, , , line]) => (end += line.length)),
      bytes: Uint8Array.from(lines.flatMap(([, , , line]) => [...line])),
    };
  });
const words = fc.constantFrom("inactive", "pending", "firing");

const alertState: fc.Arbitrary<RuleState["alerts"][number]> = record<
  RuleState["alerts"][number],
  "keptSinceMs"
>(
  { labels, annotations: labels, value: number, state: words, activeAtMs: count },
  { keptSinceMs: count },
);

const ruleState: fc.Arbitrary<RuleState> = record<RuleState, "lastEvaluationMs">(
  {
    ...{ place: u32, alert: text, record: text, query: text, forMs: count, labels },
    ...{ keepFiringForMs: count, annotations: labels, state: words, lastError: text },
    health: fc.constantFrom("unknown", "ok", "err"),
    evaluationSeconds: number,
    alerts: fc.array(alertState, { maxLength: 2 }),
  },
  { lastEvaluationMs: count },
);

export const arbitraryRuleGroup: fc.Arbitrary<RuleGroupStatus> = record<
  RuleGroupStatus,
  "lastEvaluationMs"
>(
  {
    ...{ namespace: text, name: text, intervalMs: count, limit: u32, evaluationSeconds: number },
    rules: fc.array(ruleState, { maxLength: 2 }),
  },
  { lastEvaluationMs: count },
);
