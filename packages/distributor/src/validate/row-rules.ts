import type { RawPush } from "@skald/kernels";
import type { PushLimits } from "../settings/limits.js";
import type { DiscardReason } from "./reasons.js";
import { echo, formatSeconds, raiseHint } from "./texts.js";

/** The limits that each row is held against, as numbers; Infinity where there is none. */
export interface RowRules {
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

/** A time before this does not fit into 64 bits of nanoseconds, so it is too old for everybody. */
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
export function metadataBytesOf(push: RawPush, row: number): number {
  let total = 0;
  const end = push.metaStart[row + 1]!;
  for (let pair = push.metaStart[row]!; pair < end; pair++) {
    total += push.metaNameLength[pair]! + push.metaValueLength[pair]!;
  }
  return total;
}

/** The first rule that a row breaks, in the order of the reference; undefined when it may stay. */
export function refuseRow(
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

/** What the client is told about a refused row. */
export function rowRefusalText(
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
