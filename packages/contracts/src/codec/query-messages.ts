import type {
  LogResult,
  MatrixResult,
  MatrixSeries,
  QueryResult,
  VectorResult,
} from "@skald/logql";
import type { Labels, QueryStats, SegmentRef } from "@skald/model";
import {
  damaged,
  double,
  f64s,
  field,
  int64,
  type Member,
  type MessageCodec,
  mapped,
  message,
  optional,
  rawBytes,
  repeated,
  text,
  uint,
  union,
} from "@skald/transport/protobuf";
import type { CatalogRequest, Counting } from "../catalog.js";
import type {
  ChangesRequest,
  LabelsRequest,
  QueryAnswer,
  QueryByteLimits,
  QueryKind,
  QueryRequest,
  QueryShare,
  ReplyOf,
  RequestOf,
  SpanChanges,
  StreamsRequest,
  TenantLabels,
  TenantStreams,
  VolumeAnswer,
  VolumeRequest,
} from "../querier.js";
import { areBelow, f64Lists, textList, u32Lists } from "./columns/columns.js";
import { labelSets } from "./columns/labels.js";
import { logRows } from "./columns/log-rows.js";
import { readStats } from "./columns/outcome.js";
import { streamColumns } from "./columns/streams.js";
import { problemOfCells, volumeCellFields, volumePlanFields } from "./columns/volumes.js";
import { askedSpan, spanChanges } from "./ingester-messages.js";
import { leafPlan, plan, points } from "./plan/plan.js";
import { selector } from "./scan/row-masks.js";
import { segmentRef, timeRange } from "./scan/sources.js";
import { queryShare } from "./scan/tasks.js";

const byteLimits: MessageCodec<QueryByteLimits> = message<QueryByteLimits>({
  maxBytesRead: field(1, double),
  maxMemoryBytes: field(2, double),
});

interface Actors {
  readonly names: readonly string[];
}

const actors: MessageCodec<readonly string[]> = mapped(
  message<Actors>({ names: repeated(1, text) }),
  (names) => ({ names }),
  ({ names }) => names,
);

export const queryRequest: MessageCodec<QueryRequest> = message<QueryRequest>(
  {
    tenants: repeated(1, text),
    plan: field(2, plan),
    limits: field(3, byteLimits),
    actors: optional(4, actors),
  },
  ({ tenants }) => (tenants.length === 0 ? "it names no tenant" : undefined),
);

const streamsFields = {
  fromNs: field(1, int64),
  toNs: field(2, int64),
  tenants: repeated(3, text),
  selectors: repeated(4, selector),
  actors: optional(5, actors),
};

export const streamsRequest: MessageCodec<StreamsRequest> = message<StreamsRequest>(streamsFields);

export const labelsRequest: MessageCodec<LabelsRequest> = message<LabelsRequest>({
  ...streamsFields,
  label: optional(6, text),
});

const tenantStreams: MessageCodec<TenantStreams> = message<TenantStreams>({
  tenant: field(1, text),
  streams: repeated(2, streamColumns),
});

const tenantLabels: MessageCodec<TenantLabels> = message<TenantLabels>({
  tenant: field(1, text),
  texts: field(2, textList),
});

export const streamsAnswer = message<{ readonly tenants: readonly TenantStreams[] }>({
  tenants: repeated(1, tenantStreams),
});

export const labelsAnswer = message<{ readonly tenants: readonly TenantLabels[] }>({
  tenants: repeated(1, tenantLabels),
});

/** What a frontend adds stays there. */
const queryStats: MessageCodec<QueryStats> = message<Omit<QueryStats, "subqueries" | "caches">>({
  ingester: field(1, readStats),
  store: field(2, readStats),
  ingestersReached: field(3, double),
  streams: field(4, double),
  execSeconds: field(5, double),
  queueSeconds: field(6, double),
  entriesReturned: field(7, double),
  shards: field(8, double),
});

interface WireMatrix extends Omit<MatrixResult, "kind" | "series"> {
  readonly labels: readonly Labels[];
  readonly at: readonly Uint32Array[];
  readonly values: readonly Float64Array[];
}

const matrix: MessageCodec<Omit<MatrixResult, "kind">> = mapped(
  message<WireMatrix>({
    points: field(1, points),
    labels: field(2, labelSets),
    at: field(3, u32Lists),
    values: field(4, f64Lists),
    warnings: repeated(5, text),
  }),
  ({ points: own, series, warnings }): WireMatrix => ({
    points: own,
    labels: series.map(({ labels }) => labels),
    at: series.map(({ at }) => at),
    values: series.map(({ values }) => values),
    warnings,
  }),
  ({ points: own, labels, at, values, warnings }) => ({
    points: own,
    series: labels.map((one, i) => seriesOf(one, at[i], values[i], own.count)),
    warnings,
  }),
);

function seriesOf(
  labels: Labels,
  at: Uint32Array | undefined,
  values: Float64Array | undefined,
  points: number,
): MatrixSeries {
  if (at === undefined || at.length !== values?.length || !areBelow(at, points))
    throw damaged("a series is not complete");
  return { labels, at, values };
}

interface WireVector extends Omit<VectorResult, "kind" | "samples"> {
  readonly labels: readonly Labels[];
  readonly values: Float64Array;
}

const vector: MessageCodec<Omit<VectorResult, "kind">> = mapped(
  message<WireVector>(
    {
      atNs: field(1, int64),
      labels: field(2, labelSets),
      values: field(3, f64s),
      warnings: repeated(4, text),
    },
    ({ labels, values }) =>
      labels.length === values.length ? undefined : "a sample is not complete",
  ),
  ({ atNs, samples, warnings }): WireVector => ({
    atNs,
    labels: samples.map(({ labels }) => labels),
    values: Float64Array.from(samples, ({ value }) => value),
    warnings,
  }),
  ({ atNs, labels, values, warnings }) => ({
    atNs,
    samples: labels.map((one, i) => ({ labels: one, value: values[i]! })),
    warnings,
  }),
);

type Result = QueryResult | LogResult;

export const queryAnswer: MessageCodec<QueryAnswer> = message<QueryAnswer>({
  result: field(
    1,
    union<Result>({
      matrix: [1, matrix],
      vector: [2, vector],
      scalar: [
        3,
        message<Member<Result, "scalar">>({
          atNs: field(1, int64),
          value: field(2, double),
          warnings: repeated(3, text),
        }),
      ],
      streams: [4, logRows],
    }),
  ),
  stats: field(2, queryStats),
});

export const volumeRequest: MessageCodec<VolumeRequest> = message<VolumeRequest>(
  { ...volumePlanFields, tenants: repeated(8, text), actors: optional(9, actors) },
  ({ tenants }) => (tenants.length === 0 ? "it names no tenant" : undefined),
);

export const volumeAnswer: MessageCodec<VolumeAnswer> = message<VolumeAnswer>(
  {
    ...volumeCellFields,
    streamCount: field(7, double),
    stats: field(8, queryStats),
    warnings: repeated(9, text),
  },
  problemOfCells,
);

export const changesRequest: MessageCodec<ChangesRequest> = message<ChangesRequest>(
  { tenants: repeated(1, text), spans: repeated(2, askedSpan), actors: optional(3, actors) },
  ({ tenants }) => (tenants.length === 0 ? "it names no tenant" : undefined),
);

export const changesAnswer = message<{ readonly spans: readonly SpanChanges[] }>({
  spans: repeated(1, spanChanges),
});

const counting: MessageCodec<Counting> = message<Counting>({
  plan: field(1, leafPlan),
  busy: repeated(2, timeRange),
  tenantLabel: optional(3, text),
  heldBusy: optional(4, uint),
});

/** A request of a catalog, and on whose account it counts when it is to count. */
export interface CatalogCall extends CatalogRequest {
  readonly counting?: Counting;
  readonly share?: QueryShare;
}

export const catalogRequest: MessageCodec<CatalogCall> = message<CatalogCall>({
  tenant: field(1, text),
  fromNs: field(2, int64),
  toNs: field(3, int64),
  maxAgeMs: optional(4, double),
  matchers: optional(5, selector),
  held: optional(6, textList),
  counting: optional(7, counting),
  share: optional(8, queryShare),
});

/** A catalog that does not count, because it is older, tells all segments. */
export interface CatalogReply {
  readonly segments: readonly SegmentRef[];
  readonly counted: readonly Uint8Array[];
  readonly countedSegments?: number;
  readonly known?: readonly string[];
}

export const catalogAnswer: MessageCodec<CatalogReply> = message<CatalogReply>({
  segments: repeated(1, segmentRef),
  counted: repeated(2, rawBytes),
  countedSegments: optional(3, uint),
  known: optional(4, textList),
});

/** How each kind of question and its answer are sent. */
export const queryCodecs: {
  readonly [K in QueryKind]: {
    readonly request: MessageCodec<RequestOf<K>>;
    readonly reply: MessageCodec<ReplyOf<K>>;
  };
} = {
  query: { request: queryRequest, reply: queryAnswer },
  streams: {
    request: streamsRequest,
    reply: mapped(
      streamsAnswer,
      (tenants) => ({ tenants }),
      ({ tenants }) => tenants,
    ),
  },
  labels: {
    request: labelsRequest,
    reply: mapped(
      labelsAnswer,
      (tenants) => ({ tenants }),
      ({ tenants }) => tenants,
    ),
  },
  volumes: { request: volumeRequest, reply: volumeAnswer },
  changes: {
    request: changesRequest,
    reply: mapped(
      changesAnswer,
      (spans) => ({ spans }),
      ({ spans }) => spans,
    ),
  },
};
