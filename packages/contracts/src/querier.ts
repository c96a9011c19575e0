import type { LogResult, Plan, QueryResult } from "@skald/logql";
import type { BytesColumn, Labels, Matcher, QueryStats, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";
import type { Measured, VolumeCells, VolumePlan } from "./scan.js";

/** Every kind of question that a querier answers. */
export interface QueryKinds {
  /** Runs a plan. Throws invalid_argument when it breaks a limit. */
  readonly query: Asked<QueryRequest, QueryAnswer>;
  /** Streams of each tenant with rows in the range. */
  readonly streams: Asked<StreamsRequest, readonly TenantStreams[]>;
  /** Label names of those streams, or values of one name. */
  readonly labels: Asked<LabelsRequest, readonly TenantLabels[]>;
  /** Counts rows and bytes of streams, by labels and time. Throws invalid_argument at too many groups. */
  readonly volumes: Asked<VolumeRequest, VolumeAnswer>;
  /** Says what a plan would have to read, without reading it: one answer for its log query, or for each leaf. */
  readonly explain: Asked<ExplainRequest, readonly ExplainedScan[]>;
  /**
   * Says whether rows of some time are still what they were, to callers that keep an answer: one answer for each span, in
   * order. A token stands for a state of the rows. A caller asks for the token before it asks for the answer, and may give
   * the answer again for what did not change since. Throws unavailable when that is not known.
   */
  readonly changes: Asked<ChangesRequest, readonly SpanChanges[]>;
}

interface Asked<Request, Reply> {
  readonly request: Request;
  readonly reply: Reply;
}

export type QueryKind = keyof QueryKinds;
export type RequestOf<K extends QueryKind> = QueryKinds[K]["request"];
export type ReplyOf<K extends QueryKind> = QueryKinds[K]["reply"];
/** A function for each kind of question. */
export type QueryFunctions = {
  readonly [K in QueryKind]: (request: RequestOf<K>, options: CallOptions) => Promise<ReplyOf<K>>;
};

/** Answers planned queries. */
export interface Querier<Kinds extends QueryKind = QueryKind> {
  run<K extends Kinds>(kind: K, request: RequestOf<K>, options: CallOptions): Promise<ReplyOf<K>>;
}

export interface QueryRequest {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly plan: Plan;
  readonly limits: QueryByteLimits;
  /** Who asks within the tenants; see `QueryShare`. */
  readonly actors?: readonly string[];
}

/** Bounds of one query in bytes. */
export interface QueryByteLimits {
  /** Lines that it may read, decompressed; 0: no limit. */
  readonly maxBytesRead: number;
  /** Series, samples and lines that it may hold at a time. */
  readonly maxMemoryBytes: number;
}

export interface QueryAnswer {
  readonly result: QueryResult | LogResult;
  readonly stats: QueryStats;
}

export interface ExplainRequest extends Pick<QueryRequest, "tenants" | "plan" | "actors"> {
  /** Time after which headers are looked at no more. */
  readonly maxMs: number;
}

/** What one scan would have to read. */
export interface ExplainedScan extends Measured {
  /** Segments and heads that may have rows of it. */
  readonly sources: number;
  /** False when time ran out before all headers were looked at, or deleted rows may be among them: then it reads less. */
  readonly isExact: boolean;
}

export interface StreamsRequest extends TimeRange {
  readonly tenants: readonly string[];
  /** A stream counts when any selector matches; no selector means all streams. */
  readonly selectors: readonly (readonly Matcher[])[];
  readonly actors?: readonly string[];
}

export interface LabelsRequest extends StreamsRequest {
  /** Whose values are asked for; label names when absent. */
  readonly label?: string;
}

export interface TenantStreams {
  readonly tenant: string;
  /** Lists of streams; none is in two of them. */
  readonly streams: readonly StreamColumns[];
}

/** Distinct label sets in columns: plain data, in which each label pair is there once. */
export interface StreamColumns {
  /** Two numbers for each stream, equal for equal label sets and for no others. */
  readonly hashes: Uint32Array;
  /** The pairs of stream s are `pairs[starts[s] .. starts[s + 1])`, in the order of their names. */
  readonly starts: Uint32Array;
  readonly pairs: Uint32Array;
  /** Names of labels, in any order. */
  readonly names: readonly string[];
  /** Of each pair: its name, by place in `names`. */
  readonly pairNames: Uint32Array;
  /** Of each pair: its value, as UTF-8, and two numbers that are the hash of that. */
  readonly values: BytesColumn;
  readonly valueHashes: Uint32Array;
}

export interface TenantLabels {
  readonly tenant: string;
  /** Sorted, each once. */
  readonly texts: readonly string[];
}

export interface VolumeRequest extends VolumePlan {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly actors?: readonly string[];
}

export interface VolumeAnswer extends VolumeCells {
  /** Distinct streams with rows in the range; 0 when they are not counted. */
  readonly streamCount: number;
  readonly stats: QueryStats;
  readonly warnings: readonly string[];
}

export interface ChangesRequest {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly spans: readonly AskedSpan[];
  /** Who asks within the tenants; see `QueryShare`. */
  readonly actors?: readonly string[];
}

export interface AskedSpan extends TimeRange {
  /** The token of an answer that is kept, of a span with the same ends; absent when there is none. */
  readonly since?: string;
}

export interface SpanChanges {
  /** The state of the rows now. */
  readonly token: string;
  /** Where rows may have come or gone since, in order; all of the span when that is not known. */
  readonly changed: readonly TimeRange[];
}

export interface HeldChangesRequest {
  readonly tenant: string;
  readonly spans: readonly AskedSpan[];
}

/** What an ingester, or all of a ring, can tell about the rows that were written to it. */
export interface HeldChanges {
  readonly spans: readonly SpanChanges[];
  /** Queries do not look for older rows there, so that these come into sight with their segments; absent: they look for all. */
  readonly lookedFromNs?: bigint;
}

/** Answers metric queries at one time, for whoever evaluates rules. */
export interface InstantQuerier {
  /** Throws what the query API answers with: invalid_argument for a text that is no query or breaks a limit, and so on. */
  instant(request: InstantRequest, options: CallOptions): Promise<InstantAnswer>;
}

export interface InstantRequest {
  readonly tenant: string;
  /** LogQL. */
  readonly query: string;
  /** ns since the epoch */
  readonly timeNs: bigint;
}

/** A number is one sample without labels; anything but a vector or a scalar is `other`. */
export type InstantAnswer =
  | { readonly kind: "vector"; readonly samples: readonly InstantSample[] }
  | { readonly kind: "scalar"; readonly value: number }
  | { readonly kind: "other" };

export interface InstantSample {
  readonly labels: Labels;
  readonly value: number;
}
