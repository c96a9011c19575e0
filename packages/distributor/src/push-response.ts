import type { PushRefusal } from "@skald/contracts";
import { errorStatus, SkaldError, textForClients } from "@skald/model";
import type { PushLimits } from "./settings/limits.js";
import { contactHint } from "./validate/texts.js";
import type { Validated } from "./validate/validate.js";

/** The answer to a push; without a text it has no body. */
export interface PushResponse {
  readonly status: number;
  readonly text?: string;
  /** Seconds after which a retry may pass. */
  readonly retryAfterSeconds?: number;
}

/** What became of a push whose rows are stored as far as they could be. */
export interface StoredPush {
  readonly validated: Validated;
  /** By the ingesters. */
  readonly refusals: readonly PushRefusal[];
  readonly limits: PushLimits;
}

const accepted: PushResponse = { status: 204 };
const tooManyRequests = 429;
/** Longest text of an answer; the refusals of many streams are cut here. */
const maxTextChars = 64 * 1024;
const maxRetryAfterSeconds = 60;
/** For a 429 or 503 whose end nobody knows. */
const usualRetryAfterSeconds = 1;

/**
 * The answer when the rows that could be stored are stored: what ingesters refused, then what validation refused. 429 wins over
 * 400, because only then a retry helps; a block of ingestion shows only when nothing else was wrong.
 */
export function pushResponse({ validated, refusals, limits }: StoredPush): PushResponse {
  const texts = [...new Set(refusals.map((refusal) => refusal.message))];
  if (!validated.refusals.isEmpty) texts.push(validated.refusals.text());
  if (texts.length > 0) {
    const status = refusals.some((refusal) => refusal.status === tooManyRequests)
      ? tooManyRequests
      : (refusals[0]?.status ?? 400);
    return withRetry({ status, text: texts.join("; ").slice(0, maxTextChars) });
  }
  if (validated.blocked.isEmpty || limits.block_ingestion_status_code === 200) return accepted;
  return { status: limits.block_ingestion_status_code, text: validated.blocked.text() };
}

/** What validation refused, as ingesters tell what they do. */
export function refusalsOf({ refusals, blocked }: Validated): PushRefusal[] {
  return [...refusals.kinds, ...blocked.kinds].map(({ reason, message, entries, bytes }) => ({
    status: 400,
    reason,
    message,
    entries,
    bytes,
  }));
}

/** The failure of a push that its tenant's rate does not allow; nothing of it was stored. */
export function rateLimited(facts: {
  tenant: string;
  ratePerSecond: number;
  lines: number;
  bytes: number;
  secondsUntil: number;
}): SkaldError {
  const { tenant, ratePerSecond, lines, bytes, secondsUntil } = facts;
  const text = `ingestion rate limit exceeded for user ${tenant} (limit: ${Math.floor(ratePerSecond)} bytes/sec) while attempting to ingest '${lines}' lines totaling '${bytes}' bytes, reduce log volume ${contactHint}`;
  const retryAfterSeconds = Math.min(maxRetryAfterSeconds, Math.max(1, Math.ceil(secondsUntil)));
  return new SkaldError("rate_limited", text, { retryAfterSeconds });
}

/** The answer to a push that failed as a whole; throws on what is no SkaldError, because that is a fault of ours. */
export function failedResponse(error: unknown): PushResponse {
  if (!(error instanceof SkaldError)) throw error;
  const { status, retryAfterSeconds } = error;
  const text = textForClients(error).slice(0, maxTextChars);
  return withRetry({ status, text }, retryAfterSeconds);
}

/** An answer that says when to come again, where that helps. */
function withRetry(answer: PushResponse, seconds?: number): PushResponse {
  if (seconds !== undefined) return { ...answer, retryAfterSeconds: seconds };
  const { status } = answer;
  if (status !== tooManyRequests && status !== errorStatus.unavailable) return answer;
  return { ...answer, retryAfterSeconds: usualRetryAfterSeconds };
}
