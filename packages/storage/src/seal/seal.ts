import {
  type SealedSegment,
  SegmentWriter,
  type SegmentWriterOptions,
} from "../segment/write/writer.js";
import { BlockCutter } from "./cut-blocks.js";
import { openHeads, type SealHead } from "./open-heads.js";
import { orderRows } from "./order-rows.js";

/** What to seal. The segment has bitmap filters by default: they are cheap to make and a little larger than ribbons. */
export interface SealInput
  extends Omit<SegmentWriterOptions, "baseNs" | "streamTexts" | "metadata" | "replaces"> {
  /** In order of arrival: among equal times the rows of an earlier head come first. */
  readonly heads: readonly SealHead[];
}

/**
 * Writes head blocks of one tenant and UTC day as one segment: rows sorted by stream (canonical text), then time, and
 * equal times in order of arrival. Among rows that are equal in stream, time, line and metadata only the first stays.
 * Blocks the thread, so it belongs in workers. When it throws, there is no file. Figures: bench/segment.mjs.
 */
export function sealSegment({ heads, ...input }: SealInput): SealedSegment {
  const opened = openHeads(heads);
  const { baseNs, streamTexts, metadataNames: metadata } = opened;
  const filters = input.filters ?? "bitmap";
  const writer = new SegmentWriter({ ...input, filters, baseNs, streamTexts, metadata });
  try {
    const cutter = new BlockCutter(opened, (block) => writer.append(block));
    orderRows(opened, cutter);
    cutter.finish();
    return writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}
