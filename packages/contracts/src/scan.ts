import type { LeafPlan, LogExpr, LogPartial, LogPlan, MetricPartial } from "@skald/logql";
import type { Labels, Matcher, ReadStats, SegmentRef, TimeRange } from "@skald/model";
import type { CallOptions, QueryShare } from "./call.js";

/** Every kind of scan: what it is asked, about sources that are named by `Ref`, and what it answers. */
export interface ScanKinds<Ref> {
  /** Runs a plan over some sources. Throws invalid_argument when it breaks a limit of the plan. */
  readonly scan: Kind<ScanTask<ScanPlan, Ref>, EncodedOutcome>;
  /** What a scan may have to read, from headers. */
  readonly measure: Kind<ScanTask<ScanPlan, Ref>, Measured>;
  /** Counts rows and bytes without reading lines, as `VolumeOutcome`. Throws invalid_argument at too many groups. */
  readonly volumes: Kind<VolumeTask<Ref>, EncodedOutcome>;
  /** Matching streams, each once, as `StreamColumns`. */
  readonly streams: Kind<StreamTask<Ref>, EncodedStreams>;
  /** Label names of matching streams, or the values of one name, sorted, as texts. */
  readonly labels: Kind<LabelTask<Ref>, EncodedStreams>;
  /** Rows of the first source that any of the others has too, in the range of the query at least. */
  readonly duplicates: Kind<DuplicateTask<Ref>, RowMask>;
  /** Rows of one source that any of some filters names. */
  readonly matches: Kind<MatchTask<Ref>, MatchedRows>;
  /** What sources hold of some streams, minute by minute, to be compared with what other places hold. */
  readonly digests: Kind<DigestTask<Ref>, MinuteDigests>;
  /** The hashes of rows in the minutes in which digests differ. */
  readonly rowHashes: Kind<RowHashTask<Ref>, PlacedHashes>;
  /** For each segment from `wantedFrom` on, the rows that an earlier one has too. Only the store answers it. */
  readonly sharedRows: Kind<SharedTask<Ref>, readonly RowMask[]>;
}

interface Kind<Task, Answer> {
  readonly task: Task;
  readonly answer: Answer;
}

export type ScanKind = keyof ScanKinds<SourceRef>;
/** The kinds that an ingester answers about what it holds. */
export type HeldKind = Exclude<ScanKind, "sharedRows">;
export type TaskOf<K extends ScanKind, Ref = SourceRef> = ScanKinds<Ref>[K]["task"];
export type AnswerOf<K extends ScanKind> = ScanKinds<unknown>[K]["answer"];

/** A function for each kind of scan. */
export type ScanFunctions<Ref = SourceRef, Kinds extends ScanKind = HeldKind> = {
  readonly [K in Kinds]: (task: TaskOf<K, Ref>, options: ScanOptions) => Promise<AnswerOf<K>>;
};

/**
 * Reads sources where they are: on the threads of this process, or in an ingester. `Ref` names a source to it. Every call
 * ends soon after its signal; one for a segment that is gone rejects with not_found.
 */
export interface Scanner<Ref = SourceRef, Kinds extends ScanKind = HeldKind> {
  run<K extends Kinds>(kind: K, task: TaskOf<K, Ref>, options: ScanOptions): Promise<AnswerOf<K>>;
}

/** Reads sealed segments of the store. */
export type SegmentScanner<Ref = SegmentRef> = Scanner<Ref, ScanKind>;

/** What a scan is told besides its task: on whose account it runs, so that threads are shared out fairly. */
export interface ScanOptions extends CallOptions {
  readonly share: QueryShare;
  /** Runs when nobody waits for anything else: for work that no client asked for. */
  readonly background?: boolean;
}

/** Something that can be scanned where it is held: a sealed segment, or an unsealed head of an ingester. */
export type SourceRef = SegmentRef | HeadRef;

/** A head as a view of it was selected: it can be scanned until that view is released. */
export interface HeadRef {
  readonly kind: "head";
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  /** The selection that holds it. */
  readonly view: string;
  /** The ingester that holds it, where there are several. */
  readonly instance?: string;
  /** Bytes of the rows of the streams of the selection, roughly. */
  readonly sizeBytes: number;
}

/** A source of a task. */
export interface TaskSource<Ref = SourceRef> {
  readonly ref: Ref;
}

/** What a scan can run: a log query, or one range aggregation of a metric query. */
export type ScanPlan = LeafPlan | LogPlan;

/** Work for one thread: one plan over some sources, or parts of them. */
export interface ScanTask<Plan extends ScanPlan = ScanPlan, Ref = SourceRef> {
  readonly plan: Plan;
  /** For metric plans in order of arrival, for log plans best times first. */
  readonly sources: readonly ScanSource<Ref>[];
  /** Log plans: rows worse than this time (ns since the epoch) are not wanted any more. */
  readonly boundNs?: bigint;
}

/** What a scan may have to read, as headers and filters tell it. */
export interface Measured {
  /** Bytes of lines in the blocks that it reads. */
  readonly bytes: number;
  /** Blocks with rows of its streams in its range. */
  readonly blocks: number;
  /** Those of them that neither filters refuse nor headers count. */
  readonly blocksToRead: number;
}

export interface ScanSource<Ref = SourceRef> extends TaskSource<Ref> {
  /** Order of arrival among the sources of the query; decides between rows of equal time. */
  readonly sequence: number;
  /** A part of the blocks with streams of the plan, its ends as shares of them from 0 to 1; all blocks when absent. */
  readonly part?: { readonly from: number; readonly to: number };
  /** Rows to leave out. */
  readonly mask?: RowMask;
  /** Further rows to leave out, named by their time. */
  readonly skipped?: SkippedMinutes;
  /** Adds `__tenant_id__` to every stream, for queries over several tenants. */
  readonly tenantLabel?: string;
}

export interface ScanOutcome<Plan extends ScanPlan = ScanPlan> {
  readonly partial: Plan extends LogPlan ? LogPartial : MetricPartial;
  readonly stats: ReadStats;
  /** Streams of the source with most of those that the matchers name. */
  readonly streams: number;
}

/**
 * What a scan found, as it crosses threads and services. The scan encodes it where the data is, and the merge of partial
 * results decodes it; nothing in between looks inside. See `codec/encoded.ts`.
 */
export type EncodedOutcome = Uint8Array<ArrayBuffer>;

/** Streams or texts that a scan found, in the same way. See `codec/encoded.ts`. */
export type EncodedStreams = Uint8Array<ArrayBuffer>;

/** Asks for the streams of some sources that have rows in the range and satisfy any of the selectors. */
export interface StreamTask<Ref = SourceRef> extends TimeRange {
  readonly sources: readonly TaskSource<Ref>[];
  /** No selector at all means every stream. */
  readonly selectors: readonly (readonly Matcher[])[];
  /** One of `count` parts of what there is to find, by hash: another task over the same sources finds the others. */
  readonly part?: { readonly index: number; readonly count: number };
}

/** Asks for the label names of those streams, or for the values of one name. */
export interface LabelTask<Ref = SourceRef> extends StreamTask<Ref> {
  readonly label?: string;
}

export interface DuplicateTask<Ref = SourceRef> {
  /** The newer source, then the older ones that it is compared with. */
  readonly sources: readonly TaskSource<Ref>[];
  /** Rows outside do not matter; without it all rows do. */
  readonly range?: TimeRange | undefined;
}

/** Asks which rows several segments have. */
export interface SharedTask<Ref = SegmentRef> {
  /** In order of arrival: by their first times. */
  readonly sources: readonly TaskSource<Ref>[];
  /** Of those before, only that others have their rows is of interest. */
  readonly wantedFrom: number;
  /** One of `count` parts of all streams, by hash: what the others are asked for adds to it. */
  readonly part?: { readonly index: number; readonly count: number };
}

/**
 * Rows are compared by stream and minute of event time. A stream is named by 53 bits of its hash, a minute is counted from
 * the epoch, modulo 2^32.
 */
export interface StreamMinutes {
  /** Each once. */
  readonly streams: Float64Array;
  /** How many of the minutes are those of a stream. */
  readonly counts: Uint32Array;
  readonly minutes: Uint32Array;
}

/** Asks what some sources of one place hold together, so that it can be compared with what others hold. */
export interface DigestTask<Ref> extends TimeRange {
  readonly sources: readonly TaskSource<Ref>[];
  readonly matchers: readonly Matcher[];
  /** Minutes that one digest covers, told by the first of them, a multiple of this. */
  readonly minutesEach: number;
}

/**
 * Digests of the rows that sources have of the streams of a task, one for each minute (or span of minutes) that its range touches.
 * Equal digests mean equal rows. In a minute that the range cuts, rows outside the range may be missing.
 */
export interface MinuteDigests extends StreamMinutes {
  readonly rows: Uint32Array;
  /** Wrapping sums of the halves of row hashes: low, then high. */
  readonly sums: Uint32Array;
}

/** Asks for the hash of each row in some minutes of some streams. */
export interface RowHashTask<Ref> extends TimeRange {
  readonly sources: readonly TaskSource<Ref>[];
  readonly wanted: StreamMinutes;
}

/** Rows, each with its minute, by the number of that in the task, and its place. */
export interface PlacedHashes {
  readonly minute: Uint32Array;
  /** Number of the source in the task. */
  readonly source: Uint32Array;
  readonly block: Uint32Array;
  readonly row: Uint32Array;
  /** Two numbers a row: low, then high. */
  readonly hashes: Uint32Array;
}

/** Rows to leave out because other sources have them too: all of some minutes. */
export interface SkippedMinutes {
  /** Stretches of minutes in which no row of any stream counts: first, end, first, end, ... */
  readonly all: Uint32Array;
  /** Further minutes in which those of one stream do not. */
  readonly some: StreamMinutes;
}

/** Names rows: those in the range that a log query keeps. */
export interface RowFilter extends TimeRange {
  /** Filters of one id name the same rows, so that what was found may be remembered. */
  readonly id?: string;
  readonly log: LogExpr;
  /** `now` of templates, ns since the epoch. */
  readonly nowNs: bigint;
  /** Streams of any of these selectors are not meant. */
  readonly unless?: readonly (readonly Matcher[])[];
}

export interface MatchTask<Ref = SourceRef> {
  /** One source. */
  readonly sources: readonly TaskSource<Ref>[];
  readonly filters: readonly RowFilter[];
  /** Rows outside do not matter; without it all rows do. */
  readonly range?: TimeRange | undefined;
}

export interface MatchedRows {
  readonly mask: RowMask;
  /** All rows of the source, those of the streams that a head was selected for. */
  readonly rowCount: number;
}

/** Rows of a source: to be left out by a scan, because an older source has them too or because they were deleted. */
export interface RowMask {
  /** Block numbers, ascending, and for each the ascending row numbers, each once. */
  readonly blocks: Uint32Array;
  readonly rows: readonly Uint32Array[];
}

/** What rows and bytes are counted by: time, and labels. */
export interface VolumePlan extends TimeRange {
  readonly matchers: readonly Matcher[];
  readonly groupBy: VolumeGrouping;
  readonly buckets: VolumeBuckets;
  /** More groups than this throw invalid_argument. */
  readonly maxGroups: number;
  /** Whether the streams with rows in the range are counted too. */
  readonly countsStreams: boolean;
}

/**
 * `series`: rows with the same values of some labels are a group; `names`: rows whose stream has the label are a group,
 * so that a row may be in several. All labels where no names are given.
 */
export interface VolumeGrouping {
  readonly kind: "series" | "names";
  readonly names?: readonly string[];
}

/** Bucket i holds the times `[firstNs + i * stepNs, firstNs + (i + 1) * stepNs)`, ns since the epoch. */
export interface VolumeBuckets {
  readonly firstNs: bigint;
  readonly stepNs: bigint;
  readonly count: number;
}

/**
 * Cell i counts what group `group[i]` has in bucket `bucket[i]`; cells without rows are not there. Bytes are those of
 * lines: where only some rows of a run count, their share of it.
 */
export interface VolumeCells {
  /** A group by label name has that name, with an empty value. */
  readonly groups: readonly Labels[];
  readonly group: Uint32Array;
  readonly bucket: Uint32Array;
  readonly rows: Float64Array;
  readonly bytes: Float64Array;
  /** Blocks with rows that count. */
  readonly blocks: number;
  /** Bytes of lines in blocks that may have such rows: what a scan of them reads at most. */
  readonly blockBytes: number;
}

/** Counts rows and bytes of some sources, from headers. */
export interface VolumeTask<Ref = SourceRef> {
  readonly plan: VolumePlan;
  readonly sources: readonly ScanSource<Ref>[];
}

export interface VolumeOutcome extends VolumeCells {
  /** Two numbers for each stream that was counted, equal for equal label sets; empty when they are not. */
  readonly streams: Uint32Array;
  readonly stats: ReadStats;
}
