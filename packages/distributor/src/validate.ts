import { grown, type RawPush } from "@skald/kernels";
import type { AcceptedStream } from "@skald/push";
import type { PushLimits } from "./config.js";
import type { ReceivedAmount } from "./metrics.js";
import { type DiscardReason, echo, Refusals, type RefusedRows } from "./push-response.js";
import type { PushStream } from "./stream-rules.js";

/** The result of validation: the accepted rows of a push, the refusals, and amounts. */
export interface Validated extends RefusedRows {
  /** Streams with at least one row left. */
  readonly streams: readonly AcceptedStream[];
  /** All rows, including refused ones; those of internal streams are counted separately. */
  readonly received: ReceivedAmount;
  readonly receivedInternal: ReceivedAmount;
  /** Bytes of lines and metadata of the rows that are left. */
  readonly acceptedBytes: number;
}

interface ValidateInput {
  readonly push: RawPush;
  /** Aligned with the streams of the push. */
  readonly streams: readonly PushStream[];
  readonly rules: RowRules;
  /** Given when ingestion is blocked: refuses every row whose labels are valid. */
  readonly blockedText: string | undefined;
  readonly namesDropped?: boolean | undefined;
}

/** Rows that are looked at between two yields. */
const rowsPerStep = 4096;
/** The cost of a stream beside its rows, in rows. */
const rowsPerStream = 8;

/** Checks streams and rows against the rules; yields where other work may run first. */
export function* validate(input: ValidateInput): Generator<void, Validated> {
  const validation = new Validation(input);
  const { streamCount, streamRowStart } = input.push;
  let left = rowsPerStep;
  for (let ordinal = 0; ordinal < streamCount; ordinal++) {
    const to = streamRowStart[ordinal + 1]!;
    left -= rowsPerStream;
    for (let from = streamRowStart[ordinal]!; from < to; ) {
      const end = Math.min(to, from + Math.max(1, left));
      validation.readRows(ordinal, from, end);
      left -= end - from;
      from = end;
      if (left > 0) continue;
      yield;
      left = rowsPerStep;
    }
    validation.closeStream(ordinal);
  }
  return validation.finish();
}

const noRows = new Uint32Array(0);
const daySeconds = 86_400;
const blockedReason: DiscardReason = "blocked_ingestion";

class Validation {
  readonly #push: RawPush;
  readonly #streams: readonly PushStream[];
  readonly #rules: RowRules;
  readonly #blockedText: string | undefined;
  readonly #refusals = new Refusals();
  readonly #blocked = new Refusals();
  readonly #accepted: AcceptedStream[] = [];
  readonly #received: ReceivedAmount = { rows: 0, lineBytes: 0, metadataBytes: 0 };
  readonly #receivedInternal: ReceivedAmount = { rows: 0, lineBytes: 0, metadataBytes: 0 };
  #acceptedBytes = 0;
  /** Ordinals of refused rows, ascending; the first `#droppedCount` are set. */
  #dropped = noRows;
  #droppedCount = 0;
  readonly #dropReasons: DiscardReason[] | undefined;
  /** UTC days of the accepted rows. */
  readonly #days = new Set<number>();
  /** First second of the day of the last row. */
  #dayStart = Number.NaN;
  /** Counts of the stream that is being read. */
  #keptRows = 0;
  #refusedEntries = 0;
  #refusedBytes = 0;

  constructor({ push, streams, rules, blockedText, namesDropped }: ValidateInput) {
    this.#dropReasons = namesDropped === true ? [] : undefined;
    this.#push = push;
    this.#streams = streams;
    this.#rules = rules;
    this.#blockedText = blockedText;
  }

  readRows(ordinal: number, from: number, to: number): void {
    const stream = this.#streams[ordinal]!;
    const checked = stream.refusal === undefined && this.#blockedText === undefined;
    if (checked) this.#checkRows(stream, from, to);
    else this.#refuseRows(stream, from, to);
  }

  /** Must be called after the last row of a stream. A stream without rows is not accepted. */
  closeStream(ordinal: number): void {
    const { text, refusal } = this.#streams[ordinal]!;
    if (this.#keptRows > 0) this.#accepted.push({ ordinal, text });
    if (this.#refusedEntries > 0) {
      const { reason, message } = refusal ?? {
        reason: blockedReason,
        message: this.#blockedText ?? "",
      };
      const to = refusal === undefined ? this.#blocked : this.#refusals;
      to.add(reason, this.#refusedEntries, this.#refusedBytes, () => message);
    }
    this.#keptRows = 0;
    this.#refusedEntries = 0;
    this.#refusedBytes = 0;
  }

  finish(): Validated {
    return {
      streams: this.#accepted,
      dropped: this.#droppedCount === 0 ? noRows : this.#dropped.slice(0, this.#droppedCount),
      dropReasons: this.#dropReasons,
      refusals: this.#refusals,
      blocked: this.#blocked,
      received: this.#received,
      receivedInternal: this.#receivedInternal,
      acceptedBytes: this.#acceptedBytes,
    };
  }

  #checkRows(stream: PushStream, from: number, to: number): void {
    const push = this.#push;
    const rules = this.#rules;
    const hasPairs = push.pairCount > 0;
    let lineBytes = 0;
    let metadataBytes = 0;
    let refusedBytes = 0;
    for (let row = from; row < to; row++) {
      const rowMetadata = hasPairs ? metadataBytesOf(push, row) : 0;
      const rowLine = push.lineLength[row]!;
      lineBytes += rowLine;
      metadataBytes += rowMetadata;
      const reason = refuseRow(push, row, rowMetadata, rules) ?? this.#refuseDay(row);
      if (reason === undefined) continue;
      refusedBytes += rowLine + rowMetadata;
      this.#drop(row, row + 1, reason);
      this.#keptRows--;
      this.#refusals.add(reason, 1, rowLine + rowMetadata, () =>
        rowRefusalText(push, row, reason, rules, stream.text),
      );
    }
    this.#keptRows += to - from;
    this.#count(stream, to - from, lineBytes, metadataBytes);
    this.#acceptedBytes += lineBytes + metadataBytes - refusedBytes;
  }

  #refuseRows(stream: PushStream, from: number, to: number): void {
    let lineBytes = 0;
    let metadataBytes = 0;
    for (let row = from; row < to; row++) {
      lineBytes += this.#push.lineLength[row]!;
      metadataBytes += metadataBytesOf(this.#push, row);
    }
    this.#drop(from, to, stream.refusal?.reason ?? blockedReason);
    this.#count(stream, to - from, lineBytes, metadataBytes);
    this.#refusedEntries += to - from;
    this.#refusedBytes += lineBytes + metadataBytes;
  }

  #drop(from: number, to: number, reason: DiscardReason): void {
    const count = this.#droppedCount + to - from;
    if (count > this.#dropped.length) {
      this.#dropped = grown(this.#dropped, Math.max(64, 2 * this.#dropped.length, count));
    }
    for (let row = from; row < to; row++) {
      this.#dropped[this.#droppedCount++] = row;
      this.#dropReasons?.push(reason);
    }
  }

  /** Counts the day of an otherwise valid row. Each day costs an ingester a head, so their number is limited. */
  #refuseDay(row: number): DiscardReason | undefined {
    const second = this.#push.seconds[row]!;
    if (second >= this.#dayStart && second < this.#dayStart + daySeconds) return undefined;
    const day = Math.floor(second / daySeconds);
    if (!this.#days.has(day)) {
      if (this.#days.size >= this.#rules.maxDays) return "too_many_days";
      this.#days.add(day);
    }
    this.#dayStart = day * daySeconds;
    return undefined;
  }

  #count(stream: PushStream, rows: number, lineBytes: number, metadataBytes: number): void {
    const received = stream.isInternal ? this.#receivedInternal : this.#received;
    received.rows += rows;
    received.lineBytes += lineBytes;
    received.metadataBytes += metadataBytes;
  }
}

/** The limits that each row is checked against, as numbers; Infinity when there is none. */
interface RowRules {
  readonly oldestSeconds: number;
  readonly oldestNanos: number;
  readonly newestSeconds: number;
  readonly newestNanos: number;
  readonly maxDays: number;
  readonly maxLineBytes: number;
  readonly metadataAllowed: boolean;
  readonly maxMetadataBytes: number;
  readonly maxMetadataPairs: number;
}

/** An earlier time does not fit into 64 bits of nanoseconds, so it is always too old. */
const leastSeconds = -9_200_000_000;

export function rowRulesOf(limits: PushLimits, nowMs: number, isBackfill: boolean): RowRules {
  const oldestMs =
    limits.reject_old_samples && !isBackfill
      ? nowMs - limits.reject_old_samples_max_age
      : -Infinity;
  const newestMs = nowMs + limits.creation_grace_period;
  const oldestSeconds = Math.floor(oldestMs / 1000);
  const fits = oldestSeconds > leastSeconds;
  return {
    oldestSeconds: fits ? oldestSeconds : leastSeconds,
    oldestNanos: fits ? nanosOf(oldestMs) : 0,
    newestSeconds: Math.floor(newestMs / 1000),
    newestNanos: nanosOf(newestMs),
    maxDays: unlessZero(limits.max_days_per_push),
    maxLineBytes: unlessZero(limits.max_line_size),
    metadataAllowed: limits.allow_structured_metadata,
    maxMetadataBytes: unlessZero(limits.max_structured_metadata_size),
    maxMetadataPairs: unlessZero(limits.max_structured_metadata_entries_count),
  };
}

/** Bytes of the names and values of a row's structured metadata. */
function metadataBytesOf(push: RawPush, row: number): number {
  let total = 0;
  const end = push.metaStart[row + 1]!;
  for (let pair = push.metaStart[row]!; pair < end; pair++) {
    total += push.metaNameLength[pair]! + push.metaValueLength[pair]!;
  }
  return total;
}

/** The first rule that a row breaks, in Loki's order; undefined when it breaks none. */
function refuseRow(
  push: RawPush,
  row: number,
  metadataBytes: number,
  rules: RowRules,
): DiscardReason | undefined {
  const seconds = push.seconds[row]!;
  if (seconds <= rules.oldestSeconds) {
    if (seconds < rules.oldestSeconds || push.nanos[row]! < rules.oldestNanos) {
      return "greater_than_max_sample_age";
    }
  }
  if (seconds >= rules.newestSeconds) {
    if (seconds > rules.newestSeconds || push.nanos[row]! > rules.newestNanos) {
      return "too_far_in_future";
    }
  }
  if (push.lineLength[row]! > rules.maxLineBytes) return "line_too_long";
  const pairs = push.metaStart[row + 1]! - push.metaStart[row]!;
  if (pairs === 0) return undefined;
  if (!rules.metadataAllowed) return "disallowed_structured_metadata";
  if (metadataBytes > rules.maxMetadataBytes) return "structured_metadata_too_large";
  return pairs > rules.maxMetadataPairs ? "structured_metadata_too_many" : undefined;
}

/** The error text for a refused row. */
function rowRefusalText(
  push: RawPush,
  row: number,
  reason: DiscardReason,
  rules: RowRules,
  streamText: string,
): string {
  const stream = `'${echo(streamText)}'`;
  switch (reason) {
    case "greater_than_max_sample_age":
      return `entry for stream ${stream} has timestamp too old: ${formatSeconds(push.seconds[row]!)}, oldest acceptable timestamp is: ${formatSeconds(rules.oldestSeconds)}`;
    case "too_far_in_future":
      return `entry for stream ${stream} has timestamp too new: ${formatSeconds(push.seconds[row]!)}`;
    case "too_many_days":
      return `entry for stream ${stream} has timestamp ${formatSeconds(push.seconds[row]!)}, but the push has entries of ${rules.maxDays} other UTC days already. ${raiseHint("max_days_per_push")}`;
    case "line_too_long":
      return `max entry size '${rules.maxLineBytes}' bytes exceeded for stream ${stream} while adding an entry with length '${push.lineLength[row]}' bytes`;
    case "disallowed_structured_metadata":
      return `stream ${stream} includes structured metadata, but this feature is disallowed. Please see \`limits_config.allow_structured_metadata\` or contact your Loki administrator to enable it.`;
    case "structured_metadata_too_large":
      return `stream ${stream} has structured metadata too large: '${metadataBytesOf(push, row)}' bytes, limit: '${rules.maxMetadataBytes}' bytes. ${raiseHint("max_structured_metadata_size")}`;
    case "structured_metadata_too_many":
      return `stream ${stream} has too many structured metadata labels: '${push.metaStart[row + 1]! - push.metaStart[row]!}', limit: '${rules.maxMetadataPairs}'. ${raiseHint("max_structured_metadata_entries_count")}`;
    default:
      return `entry for stream ${stream} was refused: ${reason}`;
  }
}

function nanosOf(ms: number): number {
  return (ms - Math.floor(ms / 1000) * 1000) * 1_000_000;
}

function unlessZero(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit;
}

/** `2026-11-20T10:00:00Z`, without fractions. */
function formatSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

function raiseHint(key: string): string {
  return `Please see \`limits_config.${key}\` or contact your Loki administrator to increase it.`;
}
