import { type SegmentRef, SkaldError } from "@skald/model";
import { corruptSegment } from "../corrupt.js";
import type { IndexImage } from "../index-image.js";
import { type FileRangeReader, openFileRange } from "../range-reader.js";
import type { Segment } from "../segment.js";
import { openSegment } from "./reader.js";

export interface OpenedSegmentFile {
  readonly segment: Segment;
  /** Gives the descriptor of the file back until something is read of it. */
  readonly suspend?: () => void;
  /** Closes the file; the segment must not be read any more. */
  close(): void;
}

/**
 * Opens the segment of a file of this machine, with the image of an opening before if there is one. Throws `not_found` when the file is gone, `unavailable` when too many
 * are open, and `internal`, naming it, when it cannot be read or is not what was written.
 */
export function openSegmentFile(
  ref: Pick<SegmentRef, "id" | "tenant" | "location"> & { readonly sizeBytes?: number },
  image?: IndexImage,
): OpenedSegmentFile {
  const { location } = ref;
  if (location.kind !== "file") throw new Error(`segment ${ref.id} is not a file`);
  let reader: FileRangeReader | undefined;
  try {
    // Where headers are enough, the file is not touched.
    reader = openFileRange(location.path, image === undefined ? undefined : ref.sizeBytes);
    const { suspend, close } = reader;
    return { segment: openSegment(reader, ref, image), suspend, close };
  } catch (error) {
    reader?.close();
    if (!(error instanceof SkaldError) || error.code !== "internal") throw error;
    throw corruptSegment(location.path, error);
  }
}
