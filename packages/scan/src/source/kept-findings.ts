import { type Findings, findingsBytes } from "@skald/logql";
import { LRUCache } from "lru-cache";

/** Memory for what scans found. */
const maxFindingsBytes = 64 * 1024 * 1024;
/** Findings of one segment and key: queries whose range moves look at other rows of some blocks each time. */
const maxParts = 64;

/**
 * What scans found in segments, for later scans with the same stages on any thread. Segments never change, so nothing becomes wrong:
 * what was asked for least recently is forgotten when there is too much, and all of a segment when its file goes.
 */
export class KeptFindings {
  readonly #kept: LRUCache<string, readonly Findings[]>;

  constructor(maxBytes = maxFindingsBytes) {
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (parts) => parts.reduce((sum, part) => sum + findingsBytes(part), 1),
    });
  }

  /** Bytes that are kept, roughly. */
  get bytes(): number {
    return this.#kept.calculatedSize;
  }

  /** The findings of a key (see `findingsKey`) in the segment of a place; of two that know a block the last one knows more. */
  of(place: string, key: string): readonly Findings[] | undefined {
    return this.#kept.get(entryOf(place, key));
  }

  add(place: string, key: string, findings: Findings): void {
    const entry = entryOf(place, key);
    const known = this.#kept.peek(entry) ?? [];
    this.#kept.set(entry, [...known, findings].slice(-maxParts));
  }

  forget(place: string): void {
    const start = entryOf(place, "");
    for (const entry of this.#kept.keys()) if (entry.startsWith(start)) this.#kept.delete(entry);
  }
}

function entryOf(place: string, key: string): string {
  return `${place}\n${key}`;
}
