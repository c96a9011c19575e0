import type { PushRefusal } from "@skald/contracts";
import { errorStatus, SkaldError, textForClients } from "@skald/model";
import type { BulkPush, DoorPush, NextPiece } from "@skald/push";
import type { PushLimits } from "./config.js";

/** The answer to a push; without a text it has no body. */
export interface PushResponse {
  readonly status: number;
  readonly text?: string;
  /** Seconds after which a retry may succeed. */
  readonly retryAfterSeconds?: number;
  /** Rows that an answer below 300 refused. */
  readonly rejected?: number;
  /** What became of each record of a body of records that was read; absent if it was refused as a whole. */
  readonly report?: RecordReport;
}

/** Why records of a body were refused. */
export interface RecordRefusal {
  readonly status: number;
  readonly reason: string;
}

/** What became of each record of a body. It has a number for each, because a limit may refuse a million for one reason. */
export class RecordReport {
  readonly records: number;
  readonly next: NextPiece;
  /** The action of each record of a bulk. */
  readonly actions: Uint8Array | undefined;
  readonly refusals: RecordRefusal[] = [];
  /** Records that were refused. */
  refused = 0;
  /** By record, the number of its refusal, counted from 1; 0 for one that was stored. */
  #refusalOf = new Uint32Array(0);
  readonly #numbers = new Map<string, number>();

  constructor({ records, next, actions }: Pick<RecordReport, "records" | "next" | "actions">) {
    this.records = records;
    this.next = next;
    this.actions = actions;
  }

  refuse(record: number, refusal: RecordRefusal): void {
    if (this.refused === 0) this.#refusalOf = new Uint32Array(this.records);
    if (this.#refusalOf[record] === 0) this.refused++;
    this.#refusalOf[record] = this.#numberOf(refusal);
  }

  /** The index of a record's refusal; -1 for one that was stored. */
  refusalOf(record: number): number {
    return this.refused === 0 ? -1 : this.#refusalOf[record]! - 1;
  }

  /** The first record that was refused; -1 when none was. */
  get firstRefused(): number {
    return this.#refusalOf.findIndex((number) => number > 0);
  }

  #numberOf(refusal: RecordRefusal): number {
    const { length } = this.refusals;
    const last = this.refusals[length - 1];
    if (last?.reason === refusal.reason && last.status === refusal.status) return length;
    const key = `${refusal.status} ${refusal.reason}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, length + 1);
    return this.refusals.push(refusal);
  }
}

/** The outcome of a push whose accepted rows are stored. */
export interface StoredPush {
  readonly validated: RefusedRows;
  /** Refusals of the ingesters. */
  readonly refusals: readonly PushRefusal[];
  readonly limits: Pick<PushLimits, "block_ingestion_status_code">;
}

/** The refusals of validation. */
export interface RefusedRows {
  readonly refusals: Refusals;
  /** Rows that a block of ingestion refused; it shows only when nothing else was wrong. */
  readonly blocked: Refusals;
  /** Row ordinals that were refused, ascending. */
  readonly dropped: Uint32Array;
  /** Why each was refused, where that was asked for. */
  readonly dropReasons?: readonly DiscardReason[] | undefined;
}

const tooManyRequests = 429;
/** Longest text of an answer; the refusals of many streams are cut here. */
const maxTextChars = 64 * 1024;
const maxRetryAfterSeconds = 60;
/** For a 429 or 503 of unknown duration. */
const usualRetryAfterSeconds = 1;

/**
 * The answer to a push whose accepted rows are stored: the refusals of ingesters come first, then those of validation. 429
 * wins over 400, because only then a retry helps.
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
  const status = limits.block_ingestion_status_code;
  if (validated.blocked.isEmpty || status === 200) return { status: 204 };
  return { status, text: validated.blocked.text(), rejected: validated.blocked.entries };
}

/** The answer to a body of records whose accepted rows, if any, are stored. */
export function recordsResponse(decoded: DoorPush | BulkPush, stored?: StoredPush): PushResponse {
  const { records, next } = decoded;
  const answer = stored === undefined ? ({ status: 204 } as const) : pushResponse(stored);
  const isComplete = stored === undefined || answer.status === 204;
  const actions = "actions" in decoded ? decoded.actions : undefined;
  const report = new RecordReport({ records, next, actions });
  for (const { record, reason } of decoded.refused)
    report.refuse(record, { status: badRequest, reason });
  if (!isComplete) refuseRows(report, decoded, stored);
  if (report.refused === 0) return { ...answer, report };
  const status = answer.status === 204 ? badRequest : answer.status;
  return { ...answer, status, text: new RefusedRecords(report).text, report };
}

/** At most this many reasons of refused records are told. */
const maxReasonsTold = 10;

/** Sums up which records of a body were refused. */
export class RefusedRecords {
  #records = 0;
  #refused = 0;
  readonly #reasons = new Map<string, number>();

  constructor(report?: RecordReport) {
    if (report !== undefined) this.add(report);
  }

  /** Adds the next piece of the body. */
  add(report: RecordReport): void {
    const seen = new Set<number>();
    for (let record = 0; record < report.records && seen.size < report.refusals.length; record++) {
      const at = report.refusalOf(record);
      if (at < 0 || seen.has(at)) continue;
      if (this.#reasons.size === maxReasonsTold) break;
      seen.add(at);
      const { reason } = report.refusals[at] as RecordRefusal;
      if (!this.#reasons.has(reason)) this.#reasons.set(reason, this.#records + record + 1);
    }
    this.#records += report.records;
    this.#refused += report.refused;
  }

  /** Names the first record of each reason, counted from 1; empty when none was refused. */
  get text(): string {
    if (this.#refused === 0) return "";
    const told = [...this.#reasons].map(([reason, number]) => `number ${number}: ${reason}`);
    const text = `${this.#refused} of ${this.#records} records were refused, ${told.join("; ")}`;
    return text.slice(0, maxTextChars);
  }
}

const badRequest = 400;

/**
 * Refuses the records whose rows were refused: by validation one by one, and by ingesters all that are left, because those refuse
 * streams and do not name rows. Rows that an agent sends again count once.
 */
function refuseRows(
  report: RecordReport,
  { recordOfRow }: DoorPush,
  { validated, refusals }: StoredPush,
): void {
  const { dropped, dropReasons = [] } = validated;
  const kinds = [...validated.refusals.kinds, ...validated.blocked.kinds];
  const ofReason = new Map<string, RecordRefusal>(
    kinds.map(({ reason, message }) => [reason, { status: badRequest, reason: message }]),
  );
  const [worst] = refusals.toSorted((a, b) => b.status - a.status);
  const ofIngester = worst && { status: worst.status, reason: worst.message };
  let cut = 0;
  for (let row = 0; row < recordOfRow.length; row++) {
    const reason = dropped[cut] === row ? (dropReasons[cut++] ?? "") : undefined;
    const refusal =
      reason === undefined ? ofIngester : (ofReason.get(reason) ?? { status: badRequest, reason });
    if (refusal !== undefined) report.refuse(recordOfRow[row]!, refusal);
  }
}

/** The refusals of validation in the form of an ingester's. */
export function refusalsOf({ refusals, blocked }: RefusedRows): PushRefusal[] {
  return [...refusals.kinds, ...blocked.kinds].map(({ reason, message, entries, bytes }) => ({
    status: 400,
    reason,
    message,
    entries,
    bytes,
  }));
}

/** The failure of a push that its tenant's rate does not allow; none of its rows is stored. */
export function rateLimited(facts: {
  tenant: string;
  ratePerSecond: number;
  lines: number;
  bytes: number;
  secondsUntil: number;
}): SkaldError {
  const { tenant, ratePerSecond, lines, bytes, secondsUntil } = facts;
  const text = `ingestion rate limit exceeded for user ${tenant} (limit: ${Math.floor(ratePerSecond)} bytes/sec) while attempting to ingest '${lines}' lines totaling '${bytes}' bytes, reduce log volume or contact your Loki administrator to see if the limit can be increased`;
  const retryAfterSeconds = Math.min(maxRetryAfterSeconds, Math.max(1, Math.ceil(secondsUntil)));
  return new SkaldError("rate_limited", text, { retryAfterSeconds });
}

/** The answer to a push that failed as a whole; rethrows any error that is not a SkaldError, because it is a program fault. */
export function failedResponse(error: unknown): PushResponse {
  if (!(error instanceof SkaldError)) throw error;
  const { status, retryAfterSeconds } = error;
  const text = textForClients(error).slice(0, maxTextChars);
  return withRetry({ status, text }, retryAfterSeconds);
}

/** Adds the time of a retry to an answer where a retry helps. */
function withRetry(answer: PushResponse, seconds?: number): PushResponse {
  if (seconds !== undefined) return { ...answer, retryAfterSeconds: seconds };
  const { status } = answer;
  if (status !== tooManyRequests && status !== errorStatus.unavailable) return answer;
  return { ...answer, retryAfterSeconds: usualRetryAfterSeconds };
}

/** The reasons of refusals: the `reason` label of the discarded metrics. */
export type DiscardReason =
  | "missing_labels"
  | "invalid_labels"
  | "max_label_names_per_series"
  | "label_name_too_long"
  | "label_value_too_long"
  | "duplicate_label_names"
  | "missing_enforced_labels"
  | "greater_than_max_sample_age"
  | "too_far_in_future"
  | "too_many_days"
  | "line_too_long"
  | "disallowed_structured_metadata"
  | "structured_metadata_too_large"
  | "structured_metadata_too_many"
  | "blocked_ingestion"
  | "rate_limited"
  | "request_body_too_large"
  | "unreadable_record";

/** Entries of a push that were refused for one reason. */
interface RefusedKind {
  readonly reason: DiscardReason;
  /** How often the error occurred: refused streams, or entries. */
  errors: number;
  entries: number;
  bytes: number;
  /** Text of the first error. */
  readonly message: string;
}

/**
 * Collects refusals by reason. Only the first error of each reason gets a text, so that a push of a million bad entries costs
 * no more than counting them.
 */
export class Refusals {
  readonly #kinds = new Map<DiscardReason, RefusedKind>();

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  /** Refused entries of all reasons. */
  get entries(): number {
    return [...this.kinds].reduce((sum, { entries }) => sum + entries, 0);
  }

  get kinds(): Iterable<RefusedKind> {
    return this.#kinds.values();
  }

  /** Counts one error that refuses `entries` entries of `bytes` bytes. */
  add(reason: DiscardReason, entries: number, bytes: number, message: () => string): void {
    const kind = this.#kinds.get(reason);
    if (kind === undefined) {
      this.#kinds.set(reason, { reason, errors: 1, entries, bytes, message: message() });
      return;
    }
    kind.errors++;
    kind.entries += entries;
    kind.bytes += bytes;
  }

  /** Returns the text of the only error, or one text per reason with its count. */
  text(): string {
    const kinds = [...this.#kinds.values()];
    if (kinds.length === 1 && kinds[0]?.errors === 1) return kinds[0].message;
    return kinds.map((kind) => `${kind.errors} errors like: ${kind.message}`).join("; ");
  }
}

/** An error text repeats at most this much of a push, so that a hostile push gets a short answer. */
const maxEchoChars = 4096;

/** Cuts a text of a push for its use in an error text. */
export function echo(text: string): string {
  return text.length > maxEchoChars ? `${text.slice(0, maxEchoChars)}...` : text;
}
