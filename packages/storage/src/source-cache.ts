import type { SegmentRef, SourceRef } from "@skald/model";
import { LRUCache } from "lru-cache";
import type { Segment } from "./segment.js";
import { openSegmentFile } from "./segment-file.js";
import { openHead, type Source, segmentSource } from "./source.js";

/** Keeps segments open on one thread: their parsed indexes and file descriptors, the least used closed first. */
export class SourceCache {
  readonly #segments: LRUCache<string, { segment: Segment; close(): void }>;

  constructor(options: { maxOpenSegments: number }) {
    this.#segments = new LRUCache({
      max: options.maxOpenSegments,
      dispose: (opened) => opened.close(),
    });
  }

  open(ref: SourceRef): Source {
    return ref.kind === "head" ? openHead(ref) : segmentSource(this.segment(ref));
  }

  /** The opened segment. Throws `internal`, naming the file, when it is corrupt, `not_found` when it is gone. */
  segment(ref: SegmentRef): Segment {
    const known = this.#segments.get(ref.id);
    if (known !== undefined) return known.segment;
    const opened = openSegmentFile(ref);
    this.#segments.set(ref.id, opened);
    return opened.segment;
  }

  close(): void {
    this.#segments.clear();
  }
}
