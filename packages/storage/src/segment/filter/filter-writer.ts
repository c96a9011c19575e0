import type { BytesColumn } from "@skald/model";
import type { SortedBlock } from "../layout.js";
import { BitmapGroups } from "./bitmap-groups.js";
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
export class FilterWriter {
  readonly kind: FilterKind;
  readonly groups: WrittenGroup[] = [];
  readonly #lines: FilterGroups;
  readonly #metadata: FilterGroups;
  readonly #moreNames: readonly string[];

  /** `moreNames` are the names of the pairs of metadata that blocks bring. */
  constructor(kind: FilterKind, moreNames: readonly string[]) {
    const Groups = kind === "ribbon" ? RibbonGroups : BitmapGroups;
    this.kind = kind;
    this.#lines = new Groups(filterDomains.lines, this.groups);
    this.#metadata = new Groups(filterDomains.metadata, this.groups);
    this.#moreNames = moreNames;
  }

  get blocks(): Readonly<Record<FilterDomain, readonly FilterBlock[]>> {
    return { 0: this.#lines.blocks, 1: this.#metadata.blocks };
  }

  add(block: SortedBlock): void {
    const { lines, rowCount } = block;
    this.#lines.addLines(lines, rowCount, sizeOf(lines, rowCount));
    this.#metadata.addValues(firstKeys(block, this.#moreNames), bytesOf(block));
  }

  /** Ends the last groups; nothing can be added any more. */
  finish(): void {
    this.#lines.finish();
    this.#metadata.finish();
  }
}

/** The filters of one domain; each that is added is of a block of about so many bytes. */
interface FilterGroups {
  readonly blocks: readonly FilterBlock[];
  /** Adds the filter of the texts in lines. */
  addLines(lines: BytesColumn, rowCount: number, bytes: number): void;
  /** Adds the filter of values with these first keys. */
  addValues(firstKeys: Uint32Array, bytes: number): void;
  finish(): void;
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
