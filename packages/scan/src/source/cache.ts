import type { ScanPlan, ScanSource } from "@skald/contracts";
import { type Findings, FindingsWriter, FoundBlock, findingsKey } from "@skald/logql";
import { errorCodeOf, type RunTable, type SegmentRef } from "@skald/model";
import {
  corruptSegmentOf,
  type IndexImage,
  isCached,
  type LocalRef,
  type OpenedCachedSegment,
  type OpenedSegmentFile,
  openCachedSegment,
  openSegmentFile,
  type Segment,
} from "@skald/storage";
import type { ScanContext } from "./block-reader.js";
import { type OpenSource, openHead, type Source, segmentSource } from "./source.js";
import type { Candidate } from "./view.js";

/** The decoded index of a segment in shared memory, under the place of the segment. */
export interface OpenedImage {
  readonly place: string;
  readonly image: SharedArrayBuffer;
}

/** A reference as it goes to a thread: with the index that another thread has decoded, and what scans with the same stages found. */
export type ImagedRef = LocalRef & {
  readonly image?: SharedArrayBuffer;
  readonly findings?: readonly Findings[];
};

interface SourceCacheOptions {
  readonly maxOpenSegments: number;
  /** Segments to keep, with or without an open file; no limit when absent. */
  readonly maxSegments?: number;
  /** Bytes of decoded indexes, including those that other threads share. */
  readonly maxIndexBytes: number;
  /** Called with each source before it is closed. */
  readonly onClose?: (source: Source) => void;
  readonly openFile?: (
    ref: SegmentRef,
    image?: IndexImage,
  ) => OpenedSegmentFile | OpenedCachedSegment;
}

interface Entry {
  readonly source: Source;
  readonly indexBytes: number;
  /** Its index is the one of the pool, which all threads share. */
  isGiven: boolean;
  readonly image: IndexImage;
  /** Closes the file. The next read opens it again. */
  readonly suspend?: () => void;
  readonly close: () => void;
}

/**
 * Keeps segments open on one thread: their decoded indexes, and the file descriptors of those used last. An index
 * that a reference brings replaces one that this thread decoded.
 */
export class SourceCache {
  readonly #options: SourceCacheOptions;
  /** By place, the least recently used first. A copy of a segment in another place is another entry. */
  readonly #entries = new Map<string, Entry>();
  readonly #inUse = new Set<string>();
  /** Places of segments that may have an open file, the least recently used first. */
  readonly #files = new Set<string>();
  #indexBytes = 0;
  #decoded: OpenedImage[] = [];

  constructor(options: SourceCacheOptions) {
    this.#options = options;
  }

  /** Segments that are open. */
  get size(): number {
    return this.#entries.size;
  }

  /** Segments whose files may be open. */
  get files(): number {
    return this.#files.size;
  }

  /** Runs `work`. What it opens stays open until it returns. Calls must not nest. */
  use<T>(work: (open: OpenSource) => T): T {
    try {
      return this.#withFewerFiles(() => work((ref) => this.#open(ref)));
    } catch (error) {
      // The next job may find a good file in its place.
      const damaged = corruptSegmentOf(error);
      if (damaged !== undefined && this.#entries.has(damaged)) this.#close(damaged);
      throw error;
    } finally {
      this.#inUse.clear();
      this.#trim();
    }
  }

  /** Indexes that this thread decoded since the last call, for the other threads. */
  takeDecoded(): readonly OpenedImage[] {
    const decoded = this.#decoded;
    this.#decoded = [];
    return decoded;
  }

  /** Closes the segment of a place, if it is open. */
  forget(place: string): void {
    if (this.#entries.has(place)) this.#close(place);
  }

  close(): void {
    for (const place of [...this.#entries.keys()]) this.#close(place);
  }

  /** Throws `internal`, naming the file, when a segment is corrupt, `not_found` when it is gone. */
  #open(ref: ImagedRef): Source {
    if (ref.kind === "head") return openHead(ref);
    const place = placeOf(ref);
    let known = this.#entries.get(place);
    const { image } = ref;
    const isCopy = known !== undefined && !known.isGiven && image !== undefined;
    if (known !== undefined && isCopy && !this.#inUse.has(place)) {
      if (isSameMemory(known.image, image)) known.isGiven = true;
      else {
        this.#close(place);
        known = undefined;
      }
    }
    const entry = known ?? this.#openFile(ref, ref.image);
    this.#entries.delete(place);
    this.#entries.set(place, entry);
    this.#inUse.add(place);
    this.#files.delete(place);
    this.#files.add(place);
    return entry.source;
  }

  #openFile(ref: SegmentRef, given: SharedArrayBuffer | undefined): Entry {
    const open = this.#options.openFile ?? openAnyFile;
    const opened = this.#withFewerFiles(() => open(ref, given));
    const { segment, close } = opened;
    const suspend = opened.suspend === undefined ? {} : { suspend: opened.suspend };
    const { image } = segment;
    if (given === undefined && image instanceof SharedArrayBuffer) {
      this.#decoded.push({ place: placeOf(ref), image });
    }
    const indexBytes = sizeOfIndex(segment);
    this.#indexBytes += indexBytes;
    const source = segmentSource(segment, "missing" in opened ? opened : undefined);
    return { source, image, indexBytes, isGiven: given !== undefined, close, ...suspend };
  }

  /** Closes all files that are not in use when the process has too many open, and tries again. */
  #withFewerFiles<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      const idle = [...this.#files].filter((place) => !this.#inUse.has(place));
      if (errorCodeOf(error) !== "unavailable" || idle.length === 0) throw error;
      for (const place of idle) this.#suspend(place);
      return act();
    }
  }

  /** Closes the file of a segment, and forgets a segment that cannot open its file again. */
  #suspend(place: string): void {
    const { suspend } = this.#entries.get(place) as Entry;
    if (suspend === undefined) {
      this.#close(place);
      return;
    }
    this.#files.delete(place);
    suspend();
  }

  #trim(): void {
    const {
      maxOpenSegments,
      maxIndexBytes,
      maxSegments = Number.POSITIVE_INFINITY,
    } = this.#options;
    for (const place of this.#files) {
      if (this.#files.size <= maxOpenSegments) break;
      this.#suspend(place);
    }
    for (const place of this.#entries.keys()) {
      if (this.#entries.size <= maxSegments && this.#indexBytes <= maxIndexBytes) break;
      this.#close(place);
    }
  }

  #close(place: string): void {
    const entry = this.#entries.get(place) as Entry;
    this.#entries.delete(place);
    this.#files.delete(place);
    this.#indexBytes -= entry.indexBytes;
    this.#options.onClose?.(entry.source);
    entry.close();
  }
}

function openAnyFile(ref: SegmentRef, image?: IndexImage): OpenedSegmentFile | OpenedCachedSegment {
  return isCached(ref) ? openCachedSegment(ref, image) : openSegmentFile(ref, image);
}

/**
 * Whether two objects are the same shared memory, as memory that came back from another thread is: a mark in the padding of one shows in
 * both. If another thread disturbs the mark they count as two, and the copy is dropped.
 */
function isSameMemory(own: IndexImage, given: IndexImage): boolean {
  if (own.byteLength !== given.byteLength) return false;
  const mark = new Uint8Array(own, own.byteLength - 1);
  const seen = new Uint8Array(given, given.byteLength - 1);
  mark[0] = 1;
  const isSame = seen[0] === 1;
  mark[0] = 0;
  return isSame;
}

/** The place of a segment, which names it in the cache. */
export function placeOf({ location }: SegmentRef): string {
  return location.kind === "file" ? location.path : location.key;
}

/** Memory of a decoded index, and of the objects that a thread makes from it once it has read every block. */
function sizeOfIndex({ image, blockCount }: Segment): number {
  return 16 * 1024 + image.byteLength + blockCount * 1000;
}

/** The findings of a source; undefined where rows may still be added, or have a label that a query gives them. */
export function foundBlocks(
  plan: ScanPlan,
  { ref, tenantLabel }: ScanSource<LocalRef & Pick<ImagedRef, "findings">>,
): FoundBlocks | undefined {
  if (ref.kind === "head" || tenantLabel !== undefined || findingsKey(plan) === undefined)
    return undefined;
  return new FoundBlocks(ref);
}

/** What is known of the blocks of a segment for the stages of a scan, and what the scan finds. */
export class FoundBlocks {
  readonly blocks = new Map<number, FoundBlock>();
  readonly writer = new FindingsWriter();
  readonly #ref: SegmentRef;

  constructor(ref: Pick<ImagedRef, "findings"> & SegmentRef) {
    this.#ref = ref;
    for (const findings of ref.findings ?? []) {
      findings.blocks.forEach((block, at) => {
        this.blocks.set(block, new FoundBlock(findings, at));
      });
    }
  }

  /** Whether no row of a candidate passes the stages. */
  refuses({ block, runs }: Candidate, { rowStart }: RunTable): boolean {
    const found = this.blocks.get(block);
    if (found === undefined) return false;
    return runs.every((run) => found.refuses(rowStart[run]!, rowStart[run + 1]!));
  }

  give({ onFindings }: ScanContext): void {
    const findings = this.writer.finish();
    if (findings !== undefined) onFindings?.(placeOf(this.#ref), findings);
  }
}
