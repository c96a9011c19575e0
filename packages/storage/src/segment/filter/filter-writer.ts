import {
  collectNeedleKeys,
  keysOfValues,
  markNeedleKeys,
  markValueKeys,
  windowBytes,
} from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import type { SortedBlock } from "../write/layout.js";
import { BitmapGroups, type MarkBlock } from "./bitmap-groups.js";
import {
  type FilterBlock,
  type FilterDomain,
  type FilterKind,
  filterDomains,
  type WrittenGroup,
} from "./filter-table.js";
import { RibbonGroups } from "./ribbon-groups.js";
import { firstKeys } from "./value-keys.js";

/**
 * Makes the filters of the blocks of a segment: of their lines and of their metadata, in groups of blocks that follow each other.
 * Holds what one group is made from, and the filters of the segment (about 1.7 % of its lines, as bitmaps 2.3 %).
 */
export interface FilterWriter {
  readonly kind: FilterKind;
  readonly groups: readonly WrittenGroup[];
  readonly blocks: Readonly<Record<FilterDomain, readonly FilterBlock[]>>;
  add(block: SortedBlock): void;
  /** Ends the last groups; nothing can be added any more. */
  finish(): void;
}

/** A writer of filters of a kind; `moreNames` are the names of the pairs of metadata that blocks bring. */
export function filterWriter(kind: FilterKind, moreNames: readonly string[]): FilterWriter {
  return kind === "ribbon" ? new RibbonWriter(moreNames) : new BitmapWriter(moreNames);
}

class RibbonWriter implements FilterWriter {
  readonly kind = "ribbon";
  readonly groups: WrittenGroup[] = [];
  readonly #lines = new RibbonGroups(filterDomains.lines, this.groups);
  readonly #metadata = new RibbonGroups(filterDomains.metadata, this.groups);
  readonly #moreNames: readonly string[];

  constructor(moreNames: readonly string[]) {
    this.#moreNames = moreNames;
  }

  get blocks(): FilterWriter["blocks"] {
    return { 0: this.#lines.blocks, 1: this.#metadata.blocks };
  }

  add(block: SortedBlock): void {
    const { lines, rowCount } = block;
    const { mixed, plain, hasSigns } = collectNeedleKeys(lines.bytes, lines.offsets, rowCount);
    this.#lines.add(mixed, plain, sizeOf(lines, rowCount), hasSigns);
    const values = keysOfValues(firstKeys(block, this.#moreNames));
    this.#metadata.add(values, noKeys, bytesOf(block), false);
  }

  finish(): void {
    this.#lines.finish();
    this.#metadata.finish();
  }
}

const noKeys = new Uint32Array(0);

class BitmapWriter implements FilterWriter {
  readonly kind = "bitmap";
  readonly groups: WrittenGroup[] = [];
  readonly #lines = new BitmapGroups(filterDomains.lines, this.groups);
  readonly #metadata = new BitmapGroups(filterDomains.metadata, this.groups);
  readonly #moreNames: readonly string[];

  constructor(moreNames: readonly string[]) {
    this.#moreNames = moreNames;
  }

  get blocks(): FilterWriter["blocks"] {
    return { 0: this.#lines.blocks, 1: this.#metadata.blocks };
  }

  add(block: SortedBlock): void {
    this.#addLines(block);
    const values = firstKeys(block, this.#moreNames);
    if (values.length === 0) this.#metadata.addEmpty();
    else {
      const mark: MarkBlock = (choice) => ({
        ...markValueKeys(values, values.length, choice),
        hasSigns: false,
      });
      this.#metadata.add(mark, bytesOf(block));
    }
  }

  finish(): void {
    this.#lines.finish();
    this.#metadata.finish();
  }

  #addLines({ lines, rowCount }: SortedBlock): void {
    const { bytes, offsets } = lines;
    // No text that has a key stands in such lines, in whatever case.
    if (!hasWindow(offsets, rowCount)) this.#lines.addEmpty();
    else {
      const mark: MarkBlock = (choice) => markNeedleKeys(bytes, offsets, rowCount, choice);
      this.#lines.add(mark, sizeOf(lines, rowCount));
    }
  }
}

function hasWindow(offsets: Uint32Array, rows: number): boolean {
  for (let row = 0; row < rows; row++) {
    if (offsets[row + 1]! - offsets[row]! >= windowBytes) return true;
  }
  return false;
}

/** Bytes of lines and metadata. */
function bytesOf({ lines, metadata, more, rowCount }: SortedBlock): number {
  let bytes = sizeOf(lines, rowCount) + more.values.length;
  for (const column of metadata.values()) bytes += sizeOf(column, rowCount);
  return bytes;
}

function sizeOf({ offsets }: BytesColumn, rows: number): number {
  return offsets[rows]! - offsets[0]!;
}
