import type { Block } from "@skald/model";
import { SegmentWriter } from "../segment/write/writer.js";
import { BlockGatherer } from "./cut-blocks.js";
import { openSources } from "./inputs.js";
import { orderRows } from "./sort-rows.js";

export interface SealInput {
  readonly tenant: string;
  /** Id of the segment, see keys.ts. */
  readonly id: string;
  /** Where the file appears when it is complete and synced. */
  readonly path: string;
  /** In order of arrival: of equal times the rows of an earlier head come first. */
  readonly heads: readonly SealHead[];
  /** Level of zstd; 1 where absent. */
  readonly level?: number;
}

/** Blocks of one UTC day in order of arrival, with the texts of the streams that their runs number. */
export interface SealHead {
  readonly blocks: readonly Block[];
  readonly streamTexts: readonly string[];
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
  const sources = openSources(input.heads);
  const writer = new SegmentWriter({
    path: input.path,
    id: input.id,
    tenant: input.tenant,
    baseNs: sources.baseNs,
    streamTexts: sources.streamTexts,
    metadataNames: sources.metadataNames,
    ...(input.level === undefined ? {} : { level: input.level }),
  });
  try {
    const gatherer = new BlockGatherer(sources, (block) => writer.append(block));
    orderRows(sources, gatherer);
    gatherer.finish();
    return writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}
