import type { FilterKind } from "../segment/filter/filter-table.js";
import { SegmentWriter } from "../segment/write/writer.js";
import { BlockCutter } from "./cut-blocks.js";
import { openHeads, type SealHead } from "./open-heads.js";
import { orderRows } from "./order-rows.js";

export interface SealInput {
  readonly tenant: string;
  /** Id of the segment, see keys.ts. */
  readonly id: string;
  /** Where the file appears when it is complete and its bytes are synced (see `sync`); its directory is the caller's to sync. */
  readonly path: string;
  /** In order of arrival: of equal times the rows of an earlier head come first. */
  readonly heads: readonly SealHead[];
  /** Level of zstd; 1 where absent. */
  readonly level?: number;
  /** What filters it gets; bitmaps where absent, which are cheap to make and a little larger than those of a merge. */
  readonly filters?: FilterKind;
  /** False: without agreement digests, which are of use where rows have several copies. */
  readonly digests?: boolean;
  /** False: the caller syncs the file, so that no thread waits for the disk. */
  readonly sync?: boolean;
}

export interface SealedSegment {
  readonly rows: number;
  /** Bytes of the lines. */
  readonly bytes: number;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly sizeBytes: number;
}

/**
 * Writes head blocks of one tenant and UTC day as one segment: rows sorted by stream (canonical text), then time,
 * equal times in order of arrival; of rows equal in stream, time, line and metadata only the first stays. Blocks the
 * thread; meant for workers. When it throws, there is no file. Figures: bench/segment.mjs.
 */
export function sealSegment(input: SealInput): SealedSegment {
  const heads = openHeads(input.heads);
  const writer = new SegmentWriter({
    path: input.path,
    id: input.id,
    tenant: input.tenant,
    baseNs: heads.baseNs,
    streamTexts: heads.streamTexts,
    metadata: heads.metadataNames,
    ...(input.level === undefined ? {} : { level: input.level }),
    filters: input.filters ?? "bitmap",
    ...(input.digests === undefined ? {} : { digests: input.digests }),
    ...(input.sync === undefined ? {} : { sync: input.sync }),
  });
  try {
    const cutter = new BlockCutter(heads, (block) => writer.append(block));
    orderRows(heads, cutter);
    cutter.finish();
    return writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}
