import type { CallOptions } from "./call.js";
import type { QueryKind } from "./querier.js";

/**
 * Shares queriers out among those who ask. Frontends `run` calls of a querier; queriers `take` the calls whose turn it
 * is, and `finish` them. A querier has one `watch` under way for as long as it lives: by it the scheduler tells what nobody
 * waits for any more, and learns that the querier is gone.
 */
export interface Scheduler {
  /**
   * Has a call answered by some querier; what that one threw is an answer too. Throws rate_limited when too many calls of the
   * tenant wait, and unavailable when the scheduler ends.
   */
  run(call: ScheduledCall, options: CallOptions): Promise<ScheduledAnswer>;
  /**
   * The next call for a querier, once there is one, and others that wait then, up to what it asks for; takes the answers of
   * those that it had. Throws not_found when the querier is not watching.
   */
  take(request: TakeNext, options: CallOptions): Promise<TakenCalls>;
  /** Answers a call. Of no consequence when nobody waits for it any more. */
  finish(request: FinishedCall, options: CallOptions): Promise<void>;
  /** Calls of a querier that nobody waits for any more, once there are some; the first time at once, and none. */
  watch(request: TakeRequest, options: CallOptions): Promise<CancelledCalls>;
}

/** A call of a querier; what is asked is not looked at on the way. */
export interface ScheduledCall {
  readonly method: QueryKind;
  readonly tenant: string;
  readonly actors: readonly string[];
  readonly body: Uint8Array;
  /** Queriers that failed with it: others run it for as long as there are any. */
  readonly avoid: readonly string[];
  /** Of which trace it is a part: `traceparent` and `tracestate`. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** Of body and error one is there. */
export interface ScheduledAnswer {
  readonly body?: Uint8Array;
  readonly error?: ScheduledError;
  /** Who failed with it. */
  readonly querier?: string;
  /** How long the call has waited. */
  readonly queueSeconds: number;
}

export interface TakeRequest {
  /** A name that the querier has for as long as it is connected. */
  readonly querier: string;
}

export interface TakeNext extends TakeRequest {
  readonly finished?: Outcome;
  /** Answers beside that. */
  readonly others: readonly Outcome[];
  /** Calls that it has room for, when it is more than one. */
  readonly max?: number;
}

export interface TakenCall {
  readonly id: number;
  readonly call: ScheduledCall;
}

/** One or more calls for a querier. */
export interface TakenCalls extends TakenCall {
  readonly others: readonly TakenCall[];
}

/** How a call ended: of body and error one is there. */
export interface Outcome {
  readonly id: number;
  readonly body?: Uint8Array;
  readonly error?: ScheduledError;
}

export type FinishedCall = TakeRequest & Outcome;

/** An error as it was thrown where the call ran. */
export interface ScheduledError {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  /** JSON */
  readonly detail?: string;
  /** Nobody has another answer: not to be tried again. */
  readonly isFinal?: boolean;
}

export interface CancelledCalls {
  readonly ids: readonly number[];
}
