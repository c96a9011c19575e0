import { type Batch, type BatchSource, paddingBytes } from "@skald/model";
import { withoutRows } from "@skald/push";
import type { BatchRange, HeadBlock, WalHead, WalPosition, WalRecord } from "@skald/storage";
import type { Head } from "../head/head.js";
import type { Tenant, TenantAppend } from "../tenant/tenant.js";

/**
 * The log records of a push at a place of the log: the names of streams that the file needs, then the body as received with
 * the decisions about it, or the stored rows in columns when there is no body.
 */
export function recordsOf(push: TenantAppend, batch: Batch, place: WalPosition): WalRecord[] {
  const records = namesFor(push, place);
  const tenant = push.tenant.name;
  const heads: WalHead[] = Array.from(push.heads.keys(), ({ day, id }) => ({ day, id }));
  const { source, levels, rowCount } = batch;
  if (source === undefined) {
    records.push({ kind: "push_columns", tenant, heads, ranges: push.ranges, batch });
    return records;
  }
  records.push({
    kind: "push_body",
    tenant,
    heads,
    ordinals: push.ordinals,
    streams: push.streams,
    levels: withoutRows(
      levels.length === rowCount ? levels : levels.subarray(0, rowCount),
      push.dropped,
    ),
    source: { ...source, dropped: droppedOfPush(batch, source, push.dropped) },
  });
  return records;
}

/** The log records that replace all earlier records of a head, at a place of the log. */
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

/** Row ordinals of the push that are not stored: those that the batch lacks, and the dropped rows of the batch. */
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

/** Copies the rows of blocks into a batch, in order of arrival, with a range per run. */
function batchOfBlocks(
  blocks: readonly HeadBlock[],
  baseNs: bigint,
): { batch: Batch; ranges: BatchRange[] } {
  const batch = emptyBatch(blocks);
  const ranges: BatchRange[] = [];
  const names = new Map<string, number>();
  const place = { row: 0, pair: 0, byte: 0 };
  for (const block of blocks) {
    const { runStream, runStart } = block.columns;
    for (let run = 0; run < block.runCount; run++) {
      const end = run + 1 < block.runCount ? runStart[run + 1]! : block.rowCount;
      const [rowFrom, rowTo] = [place.row + runStart[run]!, place.row + end];
      ranges.push({ stream: runStream[run]!, rowFrom, rowTo });
    }
    copyBlock(block, Number(baseNs / 1_000_000_000n), { batch, names, place });
  }
  return { batch: { ...batch, metaNames: [...names.keys()] }, ranges };
}

function emptyBatch(blocks: readonly HeadBlock[]) {
  const sum = (of: (block: HeadBlock) => number) => blocks.reduce((all, b) => all + of(b), 0);
  const rows = sum((block) => block.rowCount);
  const pairs = sum(pairsOf);
  const lineBytes = sum((block) => block.lineBytes);
  const valueBytes = sum((block) => block.columns.valueOffset[pairsOf(block)]!);
  return {
    rowCount: rows,
    streams: [],
    seconds: new Float64Array(rows),
    nanos: new Uint32Array(rows),
    bytes: new Uint8Array(lineBytes + valueBytes + paddingBytes),
    lineStart: new Uint32Array(rows),
    lineLength: new Uint32Array(rows),
    metaStart: new Uint32Array(rows + 1),
    metaName: new Uint32Array(pairs),
    metaValueStart: new Uint32Array(pairs),
    metaValueLength: new Uint32Array(pairs),
    levels: new Uint8Array(rows),
    lineBytes,
  };
}

interface Target {
  readonly batch: ReturnType<typeof emptyBatch>;
  /** Numbers of metadata names. */
  readonly names: Map<string, number>;
  /** The next free place of each kind. */
  readonly place: { row: number; pair: number; byte: number };
}

function copyBlock(block: HeadBlock, baseSeconds: number, { batch, names, place }: Target): void {
  const { timestamps, lineOffset, metaStart, levels, lines } = block.columns;
  const rows = block.rowCount;
  batch.levels.set(levels.subarray(0, rows), place.row);
  batch.bytes.set(lines.subarray(0, lineOffset[rows]), place.byte);
  for (let row = 0; row < rows; row++) {
    const at = place.row + row;
    const seconds = Math.floor(timestamps[row]! / 1e9);
    batch.seconds[at] = baseSeconds + seconds;
    batch.nanos[at] = timestamps[row]! - seconds * 1e9;
    batch.lineStart[at] = place.byte + lineOffset[row]!;
    batch.lineLength[at] = lineOffset[row + 1]! - lineOffset[row]!;
    batch.metaStart[at + 1] = place.pair + metaStart[row + 1]!;
  }
  place.row += rows;
  place.byte += lineOffset[rows]!;
  copyPairs(block, { batch, names, place });
}

function copyPairs(block: HeadBlock, { batch, names, place }: Target): void {
  const { pairName, valueOffset, values } = block.columns;
  const pairs = pairsOf(block);
  batch.bytes.set(values.subarray(0, valueOffset[pairs]), place.byte);
  for (let pair = 0; pair < pairs; pair++) {
    const name = block.metaName(pairName[pair]!);
    const number = names.get(name) ?? names.size;
    names.set(name, number);
    batch.metaName[place.pair + pair] = number;
    batch.metaValueStart[place.pair + pair] = place.byte + valueOffset[pair]!;
    batch.metaValueLength[place.pair + pair] = valueOffset[pair + 1]! - valueOffset[pair]!;
  }
  place.pair += pairs;
  place.byte += valueOffset[pairs]!;
}

function pairsOf(block: HeadBlock): number {
  return block.columns.metaStart[block.rowCount]!;
}
