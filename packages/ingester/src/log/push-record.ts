import type { Batch, BatchSource } from "@skald/model";
import type { WalHead, WalPosition, WalRecord } from "@skald/storage";
import type { Head } from "../head/head.js";
import { batchOfBlocks } from "../head/head-batch.js";
import type { Tenant, TenantAppend } from "../tenant/tenant.js";

/**
 * The log records of a push that go to a place of the log: the names of streams that the file needs, then the body as received with what
 * was decided about it, or the taken rows in columns where there is no body.
 */
export function recordsOf(push: TenantAppend, batch: Batch, place: WalPosition): WalRecord[] {
  const records = namesFor(push, place);
  const tenant = push.tenant.name;
  const heads: WalHead[] = Array.from(push.heads.keys(), ({ day, id }) => ({ day, id }));
  if (batch.source === undefined) {
    records.push({ kind: "push_columns", tenant, heads, ranges: push.ranges, batch });
    return records;
  }
  records.push({
    kind: "push_body",
    tenant,
    heads,
    ordinals: push.ordinals,
    streams: push.streams,
    levels: levelsLeft(batch, push.dropped),
    source: { ...batch.source, dropped: droppedOfPush(batch, batch.source, push.dropped) },
  });
  return records;
}

/** The log records that stand for all of a head so far and go to a place of the log. */
export function forwardRecordsOf(tenant: Tenant, head: Head, place: WalPosition): WalRecord[] {
  const { batch, ranges } = batchOfBlocks(head.blocks, head.baseNs);
  const streams = [...new Set(ranges.map(({ stream }) => stream))];
  const heads = [{ day: head.day, id: head.id }];
  return [
    ...namesFor({ tenant, streams }, place),
    { kind: "forward", tenant: tenant.name, heads, ranges, batch },
  ];
}

function namesFor(
  { tenant, streams }: Pick<TenantAppend, "tenant" | "streams">,
  place: WalPosition,
): WalRecord[] {
  const table = tenant.streams;
  const unnamed = streams.filter((stream) => table.needsName(stream, place));
  if (unnamed.length === 0) return [];
  const texts = unnamed.map((stream) => table.text(stream));
  return [{ kind: "streams", tenant: tenant.name, numbers: unnamed, texts }];
}

function levelsLeft(batch: Batch, dropped: readonly number[]): Uint8Array {
  const levels =
    batch.levels.length === batch.rowCount
      ? batch.levels
      : batch.levels.subarray(0, batch.rowCount);
  if (dropped.length === 0) return levels;
  const left = new Uint8Array(batch.rowCount - dropped.length);
  let cut = 0;
  for (let row = 0, at = 0; row < batch.rowCount; row++) {
    if (dropped[cut] === row) cut++;
    else left[at++] = levels[row]!;
  }
  return left;
}

/** Row ordinals of the push that are not taken: those missing in the batch, and the dropped rows of the batch. */
function droppedOfPush(batch: Batch, source: BatchSource, dropped: readonly number[]): Uint32Array {
  if (dropped.length === 0) return source.dropped;
  const merged = new Uint32Array(source.dropped.length + dropped.length);
  let at = 0;
  let missing = 0;
  let cut = 0;
  for (let row = 0, ordinal = 0; row < batch.rowCount; ordinal++) {
    if (source.dropped[missing] === ordinal) {
      missing++;
      merged[at++] = ordinal;
      continue;
    }
    if (dropped[cut] === row) {
      cut++;
      merged[at++] = ordinal;
    }
    row++;
  }
  merged.set(source.dropped.subarray(missing), at);
  return merged;
}
