import type { Batch, Matcher, TimeRange } from "@skald/model";
import type { CallOptions, QueryShare } from "./call.js";
import type { HeldChanges, HeldChangesRequest } from "./querier.js";
import type { MinuteDigests, Scanner, SourceRef } from "./scan.js";

/** Holds new rows until they are in the object store, and scans what it holds. */
export interface Ingester extends Scanner {
  /** Stores a batch. Resolves when the rows are in the write-ahead log; refused rows are reported, not thrown. */
  push(request: PushRequest, options: CallOptions): Promise<PushOutcome>;
  /** Consistent view of what is held for the tenant in the range: heads, and segments not dropped yet. */
  select(request: SelectRequest, options: CallOptions): Promise<Selection>;
  /** What was written since; what was acknowledged before the call is in the answer. */
  changes(request: HeldChangesRequest, options: CallOptions): Promise<HeldChanges>;
  /** Gives a view back: its heads can not be scanned any more. Of no consequence when it is gone already. */
  release(view: string, options: CallOptions): Promise<void>;
  /** Seals every head and uploads every local segment, of one tenant or of all. */
  flush(request: FlushRequest, options: CallOptions): Promise<void>;
}

/** What an ingester is to those who read. */
export type HeldRows = Omit<Ingester, "push" | "flush">;

export interface PushRequest {
  readonly tenant: string;
  readonly batch: Batch;
}

/** The part of a push that goes to one ingester of several. */
export interface PushPart {
  readonly tenant: string;
  /** All that was pushed. */
  readonly whole: Batch;
  /** The streams of the part, by index, ascending; absent where it is the whole. */
  readonly streams?: Uint32Array;
}

/** Stores parts of pushes. */
export interface PartTaker {
  /** As `push` of an ingester. Parts for several ingesters that are one object are made once. */
  pushPart(part: PushPart, options: CallOptions): Promise<PushOutcome>;
}

export interface PushOutcome {
  readonly refusals: readonly PushRefusal[];
}

/** Rows that an ingester refused, with the text that the client gets. */
export interface PushRefusal {
  /** 400 or 429 */
  readonly status: number;
  /** Reason as in the `reason` label of the discarded metrics. */
  readonly reason: string;
  readonly message: string;
  readonly entries: number;
  readonly bytes: number;
}

export interface FlushRequest {
  readonly tenant?: string;
}

export interface SelectRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** On whose account what is found will be compared with what others hold; absent where it will not be. */
  readonly share?: QueryShare;
  /** What to compare: digests of it come with the answer where they are little work. */
  readonly compare?: CompareWish;
  /** Also segments that other queries read from the store. They may be gone before the view is released. */
  readonly withLeaving?: boolean;
}

/** Stretches of time of which digests are wanted. */
export interface CompareWish {
  readonly windows: readonly TimeRange[];
  readonly minutesEach: number;
}

/** The digests of all sources of a selection in a stretch of time. */
export interface WindowDigests extends TimeRange {
  readonly digests: MinuteDigests;
  /** So many sources were looked at. */
  readonly sources: number;
  /** Whose they are, where several were asked. */
  readonly instance?: string;
}

export interface Selection {
  /** Names the view to `release`; absent when nothing was found. */
  readonly view?: string;
  readonly sources: readonly SourceRef[];
  /** Rows from this time on that the ingester ever took are all in the sources, ns since the epoch; absent when unknown. */
  readonly completeFromNs?: bigint;
  /**
   * A listing of the store that was begun less than this ago, in ms, has all that the ingester stored and does not have any more; absent
   * when any listing has that may be used.
   */
  readonly storedAgoMs?: number;
  /** As was wished for. */
  readonly compared?: { readonly windows: readonly WindowDigests[] };
}
