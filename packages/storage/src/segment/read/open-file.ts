import { notFound, type SegmentRef } from "@skald/model";
import type { Segment } from "../segment.js";
import { openFileRange } from "./range-reader.js";
import { openSegment } from "./reader.js";

export interface OpenedSegmentFile {
  readonly segment: Segment;
  /** Closes the file; the segment must not be read any more. */
  close(): void;
}

/**
 * Opens the segment of a file of this machine. Throws `not_found` when the file is gone, `internal`, naming it, when
 * it is not what was written.
 */
export function openSegmentFile(
  ref: Pick<SegmentRef, "id" | "tenant" | "location">,
): OpenedSegmentFile {
  const { location } = ref;
  if (location.kind !== "file") throw new Error(`segment ${ref.id} is not a file`);
  const reader = openExisting(location.path);
  try {
    return { segment: openSegment(reader, ref), close: reader.close };
  } catch (error) {
    reader.close();
    throw error;
  }
}

function openExisting(path: string) {
  try {
    return openFileRange(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      throw notFound(`segment file ${path} is gone`);
    }
    throw error;
  }
}
