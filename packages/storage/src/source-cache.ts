import type { SegmentRef, SourceRef } from "@skald/model";
import type { Segment } from "./segment.js";
import { type OpenedSegmentFile, openSegmentFile } from "./segment-file.js";
import { type OpenSource, openHead, type Source, segmentSource } from "./source.js";

export interface SourceCacheOptions {
  readonly maxOpenSegments: number;
  /** Estimated bytes of the parsed indexes. */
  readonly maxIndexBytes: number;
  readonly openFile?: (ref: SegmentRef) => OpenedSegmentFile;
}

interface Entry {
  readonly source: Source;
  readonly indexBytes: number;
  readonly close: () => void;
}

/** Keeps segments open on one thread: their parsed indexes and file descriptors, the least used closed first. */
export class SourceCache {
  readonly #options: SourceCacheOptions;
  /** By segment id, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  /** Segments of the work that is going on: they stay open whatever else is opened. */
  readonly #used = new Set<string>();
  #indexBytes = 0;

  constructor(options: SourceCacheOptions) {
    this.#options = options;
  }

  /** Segments that are open. */
  get size(): number {
    return this.#entries.size;
  }

  /** Runs `work`; what it opens stays open until it returns. Not to be nested. */
  use<T>(work: (open: OpenSource) => T): T {
    try {
      return work((ref) => this.#open(ref));
    } finally {
      this.#used.clear();
      this.#trim();
    }
  }

  close(): void {
    for (const id of [...this.#entries.keys()]) this.#close(id);
  }

  /** Throws `internal`, naming the file, when a segment is corrupt, `not_found` when it is gone. */
  #open(ref: SourceRef): Source {
    if (ref.kind === "head") return openHead(ref);
    const known = this.#entries.get(ref.id);
    const entry = known ?? this.#openFile(ref);
    this.#entries.delete(ref.id);
    this.#entries.set(ref.id, entry);
    this.#used.add(ref.id);
    return entry.source;
  }

  #openFile(ref: SegmentRef): Entry {
    const { segment, close } = (this.#options.openFile ?? openSegmentFile)(ref);
    const indexBytes = estimateIndex(segment);
    this.#indexBytes += indexBytes;
    return { source: segmentSource(segment), indexBytes, close };
  }

  #trim(): void {
    const { maxOpenSegments, maxIndexBytes } = this.#options;
    for (const id of [...this.#entries.keys()]) {
      if (this.#entries.size <= maxOpenSegments && this.#indexBytes <= maxIndexBytes) return;
      this.#close(id);
    }
  }

  #close(id: string): void {
    const entry = this.#entries.get(id) as Entry;
    this.#entries.delete(id);
    this.#indexBytes -= entry.indexBytes;
    entry.close();
  }
}

/** Memory of a parsed index once everything was asked for: texts and labels of a stream, headers and pages of a block. */
function estimateIndex({ streamCount, blockCount }: Segment): number {
  return 16 * 1024 + streamCount * 700 + blockCount * 1000;
}
