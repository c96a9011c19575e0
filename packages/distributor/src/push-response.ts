import type { PushRefusal } from "@skald/contracts";
import { SkaldError } from "@skald/model";
import type { PushLimits } from "./limits.js";
import type { Validated } from "./validate/validate.js";

/** The answer to a push; without a text it has no body. */
export interface PushResponse {
  readonly status: number;
  readonly text?: string;
  /** Seconds after which a retry may pass. */
  readonly retryAfterSeconds?: number;
}

const accepted: PushResponse = { status: 204 };
const tooManyRequests = 429;
/** Longest text of an answer; the refusals of many streams are cut here. */
const maxTextChars = 64 * 1024;
const maxRetryAfterSeconds = 60;

/**
 * The answer when the rows that could be stored are stored: what ingesters refused, then what validation refused. 429 wins over
 * 400, because only then a retry helps; a block of ingestion shows only when nothing else was wrong.
 */
export function pushResponse(
  validated: Validated,
  refusals: readonly PushRefusal[],
  limits: PushLimits,
): PushResponse {
  const texts = [...new Set(refusals.map((refusal) => refusal.message))];
  if (!validated.refusals.isEmpty) texts.push(validated.refusals.text());
  if (texts.length > 0) {
    const status = refusals.some((refusal) => refusal.status === tooManyRequests)
      ? tooManyRequests
      : (refusals[0]?.status ?? 400);
    return { status, text: texts.join("; ").slice(0, maxTextChars) };
  }
  if (validated.blocked.isEmpty || limits.blockIngestionStatusCode === 200) return accepted;
  return { status: limits.blockIngestionStatusCode, text: validated.blocked.text() };
}

/** The answer to a push that its tenant's rate does not allow; nothing of it was stored. */
export function rateLimitedResponse(facts: {
  tenant: string;
  ratePerSecond: number;
  lines: number;
  bytes: number;
  secondsUntil: number;
}): PushResponse {
  const { tenant, ratePerSecond, lines, bytes, secondsUntil } = facts;
  const text = `ingestion rate limit exceeded for user ${tenant} (limit: ${Math.floor(ratePerSecond)} bytes/sec) while attempting to ingest '${lines}' lines totaling '${bytes}' bytes, reduce log volume or contact your administrator to see if the limit can be increased`;
  const retryAfterSeconds = Math.min(maxRetryAfterSeconds, Math.max(1, Math.ceil(secondsUntil)));
  return { status: tooManyRequests, text, retryAfterSeconds };
}

/** The answer to a push that failed as a whole; throws on what is no SkaldError, because that is a fault of ours. */
export function failedResponse(error: unknown): PushResponse {
  if (!(error instanceof SkaldError)) throw error;
  return { status: error.status, text: error.message.slice(0, maxTextChars) };
}
