import { errorCodeOf, type SegmentRef } from "@skald/model";
import type { LocalRef, Segment } from "@skald/storage";
import { corruptSegmentOf, type OpenedSegmentFile, openSegmentFile } from "@skald/storage";
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
  /** By place, the least recently used first: a copy elsewhere is another file. */
  readonly #entries = new Map<string, Entry>();
  readonly #inUse = new Set<string>();
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
    } catch (error) {
      // Somebody may put a good file in its place.
      const damaged = corruptSegmentOf(error);
      if (damaged !== undefined && this.#entries.has(damaged)) this.#close(damaged);
      throw error;
    } finally {
      this.#inUse.clear();
      this.#trim();
    }
  }

  /** Closes the segment of a place, if it is open; it will not be asked for again. */
  forget(place: string): void {
    if (this.#entries.has(place)) this.#close(place);
  }

  close(): void {
    for (const place of [...this.#entries.keys()]) this.#close(place);
  }

  /** Throws `internal`, naming the file, when a segment is corrupt, `not_found` when it is gone. */
  #open(ref: LocalRef): Source {
    if (ref.kind === "head") return openHead(ref);
    const place = placeOf(ref);
    const known = this.#entries.get(place);
    const entry = known ?? this.#openFile(ref);
    this.#entries.delete(place);
    this.#entries.set(place, entry);
    this.#inUse.add(place);
    return entry.source;
  }

  #openFile(ref: SegmentRef): Entry {
    const open = this.#options.openFile ?? openSegmentFile;
    const { segment, close } = this.#withFewerFiles(() => open(ref));
    const indexBytes = estimateIndex(segment);
    this.#indexBytes += indexBytes;
    return { source: segmentSource(segment), indexBytes, close };
  }

  /** Where too many files are open, those that are not in use are closed first. */
  #withFewerFiles<T>(open: () => T): T {
    try {
      return open();
    } catch (error) {
      const idle = [...this.#entries.keys()].filter((place) => !this.#inUse.has(place));
      if (errorCodeOf(error) !== "unavailable" || idle.length === 0) throw error;
      for (const place of idle) this.#close(place);
      return open();
    }
  }

  #trim(): void {
    const { maxOpenSegments, maxIndexBytes } = this.#options;
    for (const place of [...this.#entries.keys()]) {
      if (this.#entries.size <= maxOpenSegments && this.#indexBytes <= maxIndexBytes) return;
      this.#close(place);
    }
  }

  #close(place: string): void {
    const entry = this.#entries.get(place) as Entry;
    this.#entries.delete(place);
    this.#indexBytes -= entry.indexBytes;
    entry.close();
  }
}

function placeOf({ location }: SegmentRef): string {
  return location.kind === "file" ? location.path : location.key;
}

/** Memory of a parsed index once everything was asked for: texts and labels of a stream, headers and pages of a block. */
function estimateIndex({ streamCount, blockCount }: Segment): number {
  return 16 * 1024 + streamCount * 700 + blockCount * 1000;
}
