import {
  type LogPartial,
  type LogResult,
  linesOf,
  type MetricPartial,
  type QueryResult,
} from "@skald/logql";
import {
  type BytesColumn,
  emptyReadStats,
  type Labels,
  paddingBytes,
  type QueryPhases,
  type ReadStats,
} from "@skald/model";
import fc from "fast-check";
import type {
  QueryAnswer,
  QueryRequest,
  ScanOutcome,
  StreamColumns,
  StreamsRequest,
  TailRequest,
  TailRows,
  VolumeAnswer,
  VolumeOutcome,
} from "../../index.js";
import {
  count,
  labels,
  matcher,
  ns,
  number,
  record,
  rowLabels,
  selectors,
  text,
  u32,
} from "./common.js";
import { arbitraryPlan } from "./tasks.js";

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

const statKeys = Object.keys(emptyReadStats());
const stats = fc
  .array(number, { minLength: statKeys.length, maxLength: statKeys.length })
  .map(
    (numbers) =>
      Object.fromEntries(statKeys.map((key, i) => [key, numbers[i]])) as unknown as ReadStats,
  );

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
    lines: linesOf(lines),
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

const queryStats = record<Omit<QueryAnswer["stats"], "subqueries" | "caches" | "planSeconds">>({
  ingester: stats,
  store: stats,
  ingestersReached: number,
  streams: number,
  execSeconds: number,
  queueSeconds: number,
  entriesReturned: number,
  shards: number,
  phases: record<QueryPhases>({ find: number, scan: number, merge: number }),
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
  blockBytes: 100 * list.length,
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

export const arbitraryTailRows: fc.Arbitrary<TailRows> = record<TailRows, "rows" | "unnamed">(
  {
    dropped: fc.array(record<TailRows["dropped"][number]>({ timestampNs: ns, labels }), {
      maxLength: 3,
    }),
  },
  { rows: logResult, unnamed: fc.integer({ min: 1, max: 1e9 }) },
);
