import type {
  Grouping,
  LabelFilter,
  LabelFormat,
  LabelTarget,
  LeafPlan,
  LineFilterValue,
  LogExpr,
  LogPartial,
  LogPlan,
  LogResult,
  MatrixResult,
  MetricPartial,
  MetricPlan,
  Plan,
  PlanNode,
  Points,
  QueryLimits,
  RangeFunction,
  RowLabels,
  RowPlaces,
  Shard,
  Stage,
  Unwrap,
  VectorMatching,
  VectorResult,
  Windows,
} from "@skald/logql";
import type {
  BatchSource,
  BytesColumn,
  Labels,
  Matcher,
  OtlpAttributeRule,
  OtlpMapping,
  OtlpReading,
  QueryStats,
  ReadStats,
  SegmentLocation,
  SegmentRef,
  TimeRange,
} from "@skald/model";
import type { QueryShare } from "../call.js";
import type { CatalogRequest, Counting, DeletesRequest } from "../catalog.js";
import type {
  CompareWish,
  FlushRequest,
  PushOutcome,
  PushRefusal,
  Selection,
  SelectRequest,
  WindowDigests,
} from "../ingester.js";
import type { FoundPatterns, Pattern, PatternsRequest, SampledLines } from "../patterns.js";
import type {
  AskedSpan,
  ChangesRequest,
  ExplainedScan,
  ExplainRequest,
  HeldChanges,
  HeldChangesRequest,
  LabelsRequest,
  QueryAnswer,
  QueryByteLimits,
  QueryRequest,
  SpanChanges,
  StreamColumns,
  StreamsRequest,
  TenantLabels,
  TenantStreams,
  VolumeAnswer,
  VolumeRequest,
} from "../querier.js";
import type { AlertState, RuleGroupStatus, RuleGroupsRequest, RuleState } from "../rules.js";
import type {
  DigestTask,
  DuplicateTask,
  HeadRef,
  LabelTask,
  MatchedRows,
  MatchTask,
  Measured,
  MinuteDigests,
  PlacedHashes,
  RowFilter,
  RowHashTask,
  RowMask,
  ScanOutcome,
  ScanPlan,
  ScanSource,
  ScanTask,
  SkippedMinutes,
  SourceRef,
  StreamMinutes,
  StreamTask,
  TaskSource,
  VolumeBuckets,
  VolumeGrouping,
  VolumeOutcome,
  VolumePlan,
  VolumeTask,
} from "../scan.js";
import type {
  CancelledCalls,
  FinishedCall,
  Outcome,
  ScheduledAnswer,
  ScheduledCall,
  ScheduledError,
  TakeNext,
  TakenCall,
  TakenCalls,
  TakeRequest,
} from "../scheduler.js";
import type { TailRequest, TailRows } from "../tail.js";
import type { messages } from "./schema.js";
import type { words } from "./words.js";

/** A task, the account that its work counts for, and whether nobody waits for it. */
export interface Shared<Task> {
  readonly task: Task;
  readonly share: QueryShare;
  readonly background?: boolean;
}

/** A request to a catalog; with `counting` and `share` it is to count. */
export interface CatalogCall extends CatalogRequest {
  readonly counting?: Counting;
  readonly share?: QueryShare;
}

/** The answer of a catalog; one that did not count lists every segment. */
export interface CatalogReply {
  readonly segments: readonly SegmentRef[];
  readonly counted: readonly Uint8Array[];
  readonly countedSegments?: number;
  readonly known?: readonly string[];
}

type NoKind<T> = T extends unknown ? Omit<T, "kind"> : never;

/** The type that each message has inside a process. Messages that are not here have the type that follows from the schema. */
export interface Types {
  TextList: readonly string[];
  LabelSets: readonly Labels[];
  RowLabels: readonly RowLabels[];
  U32Lists: readonly Uint32Array[];
  F64Lists: readonly Float64Array[];
  BytesColumn: BytesColumn;

  PushSource: Omit<BatchSource, "body">;
  OtlpReading: OtlpReading;
  OtlpMapping: OtlpMapping;
  OtlpRule: OtlpAttributeRule;
  PushOutcome: PushOutcome;
  PushRefusal: PushRefusal;

  Matcher: Matcher;
  Grouping: Grouping;
  Shard: Shard;
  Windows: Windows;
  Points: Points;
  LabelFilter: LabelFilter;
  Stage: Stage;
  LineFilterValue: LineFilterValue;
  LabelFormat: LabelFormat;
  Target: LabelTarget;
  LogExpr: LogExpr;
  Unwrap: Unwrap;
  LogPlan: NoKind<LogPlan>;
  LeafPlan: LeafPlan;
  RangeFunction: RangeFunction;
  ScanPlan: ScanPlan;
  Plan: Plan;
  MetricPlan: NoKind<MetricPlan>;
  QueryLimits: QueryLimits;
  PlanTree: PlanNode;
  VectorMatching: VectorMatching;

  SourceRef: SourceRef;
  SegmentRef: SegmentRef;
  HeadRef: NoKind<HeadRef>;
  Location: SegmentLocation;
  TaskSource: TaskSource;
  TimeRange: TimeRange;
  RowMask: RowMask;
  QueryShare: QueryShare;
  RowFilter: RowFilter;
  Selectors: readonly (readonly Matcher[])[];
  Selector: readonly Matcher[];
  SelectRequest: SelectRequest;
  CompareWish: CompareWish;
  Selection: Selection;
  WindowDigests: WindowDigests;
  AskedSpan: AskedSpan;
  SpanChanges: SpanChanges;
  HeldChangesRequest: HeldChangesRequest;
  HeldChanges: HeldChanges;
  FlushRequest: FlushRequest;

  ScanRequest: Shared<ScanTask>;
  ScanTask: ScanTask;
  ScanSource: ScanSource;
  StreamMinutes: StreamMinutes;
  SkippedMinutes: SkippedMinutes;
  DigestTask: DigestTask<SourceRef>;
  DigestsRequest: Shared<DigestTask<SourceRef>>;
  MinuteDigests: MinuteDigests;
  RowHashTask: RowHashTask<SourceRef>;
  RowHashesRequest: Shared<RowHashTask<SourceRef>>;
  PlacedHashes: PlacedHashes;
  MeasureAnswer: Measured;
  ScanVolumesRequest: Shared<VolumeTask>;
  VolumeTask: VolumeTask;
  VolumePlan: VolumePlan;
  VolumeGrouping: VolumeGrouping;
  VolumeBuckets: VolumeBuckets;
  ScanStreamsRequest: Shared<StreamTask>;
  StreamTask: StreamTask;
  ScanLabelsRequest: Shared<LabelTask>;
  LabelTask: LabelTask;
  DuplicatesRequest: Shared<DuplicateTask>;
  DuplicateTask: DuplicateTask;
  MatchesRequest: Shared<MatchTask>;
  MatchTask: MatchTask;
  MatchedRows: MatchedRows;
  Outcome: ScanOutcome;
  LogPartial: LogPartial;
  MetricPartial: MetricPartial;
  RowPlaces: RowPlaces;
  VolumeOutcome: VolumeOutcome;
  StreamColumns: StreamColumns;
  ReadStats: ReadStats;

  Actors: readonly string[];
  QueryRequest: QueryRequest;
  ByteLimits: QueryByteLimits;
  QueryAnswer: QueryAnswer;
  QueryStats: Omit<QueryStats, "subqueries" | "caches" | "planSeconds">;
  Matrix: NoKind<MatrixResult>;
  Vector: NoKind<VectorResult>;
  Streams: NoKind<LogResult>;
  StreamsRequest: StreamsRequest;
  StreamsAnswer: readonly TenantStreams[];
  TenantStreams: TenantStreams;
  LabelsRequest: LabelsRequest;
  LabelsAnswer: readonly TenantLabels[];
  TenantLabels: TenantLabels;
  VolumeRequest: VolumeRequest;
  VolumeAnswer: VolumeAnswer;
  ExplainRequest: ExplainRequest;
  ExplainAnswer: readonly ExplainedScan[];
  ExplainedScan: ExplainedScan;
  ChangesRequest: ChangesRequest;
  ChangesAnswer: readonly SpanChanges[];

  CatalogRequest: CatalogCall;
  Counting: Counting;
  CatalogAnswer: CatalogReply;
  DeletesRequest: DeletesRequest;
  DeletesAnswer: readonly RowFilter[];

  ScheduledCall: ScheduledCall;
  ScheduledAnswer: ScheduledAnswer;
  ScheduledError: ScheduledError;
  TakeRequest: TakeRequest;
  TakeNext: TakeNext;
  TakenCall: TakenCall;
  TakenCalls: TakenCalls;
  CallOutcome: Outcome;
  FinishedCall: FinishedCall;
  CancelledCalls: CancelledCalls;

  TailRequest: TailRequest;
  TailRows: TailRows;
  SampledLines: SampledLines;
  PatternsRequest: PatternsRequest;
  FoundPatterns: FoundPatterns;
  LinePattern: Pattern;
  RuleGroupsRequest: RuleGroupsRequest;
  RuleGroupsAnswer: readonly RuleGroupStatus[];
  RuleGroupStatus: RuleGroupStatus;
  RuleState: RuleState;
  AlertState: AlertState;
  NamesAndValues: Labels;
}

export type MessageName = keyof typeof messages;
/** The type of a message inside a process. */
export type Inside<N extends MessageName> = N extends keyof Types ? Types[N] : Raw<N>;

interface Scalars {
  readonly uint: number;
  readonly double: number;
  readonly int64: bigint;
  readonly bool: boolean;
  readonly string: string;
  readonly bytes: Uint8Array;
  readonly u32s: Uint32Array;
  readonly f64s: Float64Array;
  readonly i64s: BigInt64Array;
}

type One<Owner extends string, Key, Type> = `${Owner}.${Key & string}` extends keyof typeof words
  ? (typeof words)[`${Owner}.${Key & string}`][number]
  : Type extends keyof Scalars
    ? Scalars[Type]
    : Type extends MessageName
      ? Inside<Type>
      : never;
type Value<Owner extends string, Key, E> = E extends readonly [number, infer Type, "repeated"]
  ? readonly One<Owner, Key, Type>[]
  : E extends readonly [number, infer Type, ...unknown[]]
    ? One<Owner, Key, Type>
    : never;
type OptionalKeys<Fields> = {
  [K in keyof Fields]: Fields[K] extends readonly [number, string, "optional"] ? K : never;
}[keyof Fields];
type Flatten<T> = { readonly [K in keyof T]: T[K] };

/** The type that follows from the schema: a `oneof` is a union by `kind`, sfixed64 are bigint, packed lists typed arrays. */
export type Raw<N extends MessageName> = (typeof messages)[N] extends {
  readonly oneof: infer Kinds;
}
  ? {
      [Kind in keyof Kinds]: Flatten<
        { readonly kind: Kind } & Omit<Value<N, Kind, Kinds[Kind]>, "kind">
      >;
    }[keyof Kinds]
  : RawFields<N, (typeof messages)[N]>;
type RawFields<N extends string, Fields> = Flatten<
  {
    readonly [K in Exclude<keyof Fields, OptionalKeys<Fields>>]: Value<N, K, Fields[K]>;
  } & { readonly [K in OptionalKeys<Fields>]?: Value<N, K, Fields[K]> }
>;
