import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnswerOf, RowMask, ScanKind, TaskOf } from "@skald/contracts";
import {
  dayNs,
  floorDiv,
  formatLabels,
  labelsFromObject,
  type SegmentRef,
  type TimeRange,
} from "@skald/model";
import type { HeadView, LocalRef } from "@skald/storage";
import {
  HeadBlock,
  type HeadBlockRef,
  openHeadBlock,
  sealSegment,
  shareTexts,
} from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import { BlockDigestCache } from "../dedup/minute-digests.js";
import { threadScans } from "../jobs.js";
import type { FoundMatches } from "../scans/matches.js";
import { uniteMasks } from "../source/row-mask.js";
import type { OpenSource } from "../source/source.js";

export { BlockDigestCache };

/** One row as tests write it. */
export interface SourceRow {
  readonly labels: Readonly<Record<string, string>>;
  /** ns since the epoch */
  readonly ns: bigint;
  readonly line: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface SourceOptions {
  readonly id: string;
  readonly tenant?: string;
  /** Rows of each head block; all in one when absent. */
  readonly rowsPerBlock?: number;
}

/** Midnight of the day that tests use. */
export const testDayNs = 20_777n * dayNs;

/** A row of the stream `{app="<app>"}` at an offset from midnight, in ns. */
export function row(
  app: string,
  time: number,
  line: string,
  metadata?: Readonly<Record<string, string>>,
): SourceRow {
  const ns = testDayNs + BigInt(time);
  return { labels: { app }, ns, line, ...(metadata === undefined ? {} : { metadata }) };
}

/** An unsealed head of rows of one day, in this order. */
export function makeHead(rows: readonly SourceRow[], options: SourceOptions): HeadView {
  const { blocks, texts } = makeBlocks(rows, options);
  const times = rows.map(({ ns }) => ns).sort((a, b) => (a < b ? -1 : 1));
  return {
    kind: "head",
    id: options.id,
    tenant: options.tenant ?? "t",
    minNs: times[0] as bigint,
    maxNs: times.at(-1) as bigint,
    streams: Uint32Array.from(texts, (_, stream) => stream),
    texts: shareTexts(texts),
    matchers: [],
    blocks,
    sizeBytes: blocks.reduce((sum, { memory }) => sum + memory.byteLength, 0),
  };
}

/** A sealed file of rows of one day. */
export function makeSegment(
  directory: string,
  rows: readonly SourceRow[],
  options: SourceOptions,
): SegmentRef {
  const { id, tenant = "t" } = options;
  const { blocks, texts } = makeBlocks(rows, options);
  const path = join(directory, `${id}.parquet`);
  const heads = [{ blocks: blocks.map(openHeadBlock), streamTexts: texts }];
  const { minNs, maxNs, sizeBytes } = sealSegment({ tenant, id, path, heads });
  const location = { kind: "file", path } as const;
  return { kind: "segment", id, tenant, minNs, maxNs, sizeBytes, location };
}

/** A directory for segments; `remove` deletes it. */
export function makeDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "skald-scan-"));
  return { path, remove: () => rmSync(path, { recursive: true }) };
}

function makeBlocks(rows: readonly SourceRow[], { rowsPerBlock = rows.length }: SourceOptions) {
  const texts: string[] = [];
  const blocks: HeadBlockRef[] = [];
  for (let from = 0; from < rows.length; from += rowsPerBlock) {
    blocks.push(makeBlock(rows.slice(from, from + rowsPerBlock), texts, blocks.length));
  }
  return { blocks, texts };
}

function makeBlock(rows: readonly SourceRow[], texts: string[], number: number): HeadBlockRef {
  const bytes = rows.reduce((sum, { line }) => sum + Buffer.byteLength(line), 0);
  const metadata = rows.flatMap((one) => Object.entries(one.metadata ?? {}));
  const baseNs = floorDiv(rows[0]!.ns, dayNs) * dayNs;
  const head = new HeadBlock(baseNs, {
    rows: rows.length,
    runs: rows.length,
    pairs: metadata.length,
    lineBytes: bytes,
    valueBytes: metadata.reduce((sum, [, value]) => sum + Buffer.byteLength(value), 0),
  });
  for (const { labels, ns, line, metadata: own = {} } of rows) {
    const text = formatLabels(labelsFromObject(labels));
    const known = texts.indexOf(text);
    const stream = known >= 0 ? known : texts.push(text) - 1;
    const batch = makeBatch([{ labels, rows: [{ ns, line, metadata: own }] }]);
    if (head.append(batch, 0, 1, stream) !== 1) throw new Error("the block is too small");
  }
  head.publish(head.rowCount);
  return head.view(number);
}

/** What an ingester shows of a head to a query over a range: the blocks that have rows in it. */
export function headWithin(head: HeadView, { fromNs, toNs }: TimeRange): HeadView {
  const blocks = head.blocks.filter((ref) => {
    const { count, minTime, maxTime } = openHeadBlock(ref).runs;
    const from = Number(fromNs - ref.baseNs);
    const to = Number(toNs - ref.baseNs);
    return Array.from({ length: count }).some((_, i) => minTime[i]! < to && maxTime[i]! >= from);
  });
  return { ...head, blocks };
}

/**
 * Runs a scan on this thread, with the answer that `ScanPool` gives. `check` throws when it was cancelled; `digests` are what
 * the thread remembers of other scans.
 */
export function scanHere<K extends ScanKind>(
  kind: K,
  task: TaskOf<K, LocalRef>,
  {
    open,
    check,
    digests = new BlockDigestCache(),
  }: {
    readonly open: OpenSource;
    readonly check: () => void;
    readonly digests?: BlockDigestCache;
  },
): AnswerOf<K> {
  const context = { check, digests };
  const found: unknown = threadScans[kind].run(task, open, context);
  if (kind === "duplicates") return uniteMasks(found as RowMask[]) as AnswerOf<K>;
  if (kind !== "matches") return found as AnswerOf<K>;
  const { masks, rowCount } = found as FoundMatches;
  return { mask: uniteMasks(masks), rowCount } as AnswerOf<K>;
}
