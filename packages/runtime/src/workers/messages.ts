import type { ErrorCode } from "@skald/model";
import { errorCodeOf, errorStatus, SkaldError } from "@skald/model";
import { messageWithCauses } from "../log/message.js";
import type { SpanFacts, TraceContext } from "../tracing/tracing.js";

/** What a pool sends to a thread: a job, the end of one that nobody waits for any more, or the answer to a call of a job. */
export type ToThread =
  | {
      readonly kind: "job";
      readonly id: number;
      /** Which of the thread's shared words says that this job shall stop. */
      readonly slot: number;
      readonly name: string;
      readonly payload: unknown;
      /** The span that the job is. */
      readonly trace?: TraceContext | undefined;
    }
  | { readonly kind: "cancel"; readonly id: number }
  | ({ readonly kind: "answer"; readonly call: number } & Outcome);

/** What a thread sends to its pool: that it can take jobs, what became of one and what memory the thread has then, what one asks of the pool's process, or a span that is over. */
export type FromThread =
  | { readonly kind: "ready" }
  | ({ readonly kind: "done"; readonly id: number; readonly heldBytes: number } & Outcome)
  | {
      readonly kind: "call";
      readonly id: number;
      readonly call: number;
      readonly name: string;
      readonly payload: unknown;
      /** The span within which the job asks. */
      readonly trace?: TraceContext | undefined;
    }
  | { readonly kind: "hang_up"; readonly call: number }
  | { readonly kind: "span"; readonly span: SpanFacts };

export type Outcome = { readonly value: unknown } | { readonly error: SentError };

/** An error crosses as its parts. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
  readonly detail?: unknown;
  readonly retryAfterSeconds?: number;
  /** Of errors that nobody foresaw; of others what their causes say. */
  readonly stack?: string;
}

export function describeError(error: unknown): SentError {
  if (error instanceof SkaldError) {
    const { code, message, status, detail, retryAfterSeconds } = error;
    return {
      ...{ code, message, status },
      ...(detail === undefined ? {} : { detail }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(error.cause === undefined ? {} : { stack: messageWithCauses(error.cause) }),
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  const code = errorCodeOf(error);
  const fault = { code, message, status: errorStatus[code] };
  return stack === undefined ? fault : { ...fault, stack };
}

export function withoutDetail({ detail: _, ...error }: SentError): SentError {
  return error;
}

/** The stack of a fault, or what the causes of an error say, is its cause, so that it reaches the log and not the client. */
export function reviveError({ code, message, stack, ...facts }: SentError): SkaldError {
  const cause = stack === undefined ? {} : { cause: new Error(stack) };
  return new SkaldError(code, message, { ...facts, ...cause });
}

export function cancelledError(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

/** A buffer moves once; empty ones are shared constants, cheaper to copy than to lose. */
export function buffersToMove(transfer: readonly ArrayBuffer[] = []): ArrayBuffer[] {
  return [...new Set(transfer.filter((buffer) => buffer.byteLength > 0))];
}
