import {
  type ChunkSummary,
  encodeFooter,
  encodePageIndexes,
  type RowGroupSummary,
} from "../../parquet/footer.js";
import {
  maxPageHeaderBytes,
  type PageHeader,
  type ReadChunk,
  type ReadFooter,
} from "../../parquet/read-metadata.js";
import type { Leaf } from "../../parquet/schema.js";
import type { SegmentIndex } from "../read/index-reader.js";
import type { SegmentTrailer } from "../trailer.js";
import { createdBy, indexPlace } from "../write/writer.js";
import { type Blocks, type CheckedFile, ChunkWalk, rowsOf } from "./chunk-walk.js";
import { columnOf, isLabel, nameOf } from "./leaf-columns.js";

/** Something of a file that is not as it was written. */
export interface Damage {
  /** What it is in: `footer`, `filter at 123`, `column line, page of block 4`. */
  readonly part: string;
  /** Place in the file, where it is known. */
  readonly offset?: number;
  readonly message: string;
}

export interface VerifiedFile extends CheckedFile {
  readonly trailer: SegmentTrailer;
  readonly footer: ReadFooter;
  readonly footerBytes: Uint8Array;
  /** Told of each thing that is not as it was written. */
  readonly onDamage: (damage: Damage) => void;
}

/**
 * Walks over all pages as a reader of Parquet does, holds their headers against the own index and checks their checksums;
 * then makes page indexes and footer anew from what was found, and compares. Yields the bytes that each step read.
 */
export function* verifyPages(file: VerifiedFile): Generator<number, void> {
  const { footer, index, onDamage } = file;
  if (footer.rowGroups.length !== index.groupBlocks.length) {
    onDamage({ part: "footer", message: `it has ${footer.rowGroups.length} row groups` });
    return;
  }
  const walk = new PageWalk(file);
  const groups: RowGroupSummary[] = [];
  let block = 0;
  for (const [g, { chunks }] of footer.rowGroups.entries()) {
    const summaries: ChunkSummary[] = [];
    const blocks = { from: block, to: block + index.groupBlocks[g]! };
    for (const [c, chunk] of chunks.entries()) {
      const summary = yield* walk.chunk(footer.leaves[c]!, chunk, blocks);
      if (summary !== undefined) summaries.push(summary);
    }
    groups.push({ rowCount: rowsOf(index, blocks), chunks: summaries });
    block = blocks.to;
  }
  // What damaged pages say of themselves would make everything behind them look damaged.
  if (!walk.isDamaged) compareMetadata(file, groups, walk.end);
}

class PageWalk {
  /** Where the chunk before ended. */
  end = 4;
  isDamaged = false;
  readonly #file: VerifiedFile;

  constructor(file: VerifiedFile) {
    this.#file = file;
  }

  /** The chunk as the footer must describe it; undefined when it is damaged. */
  *chunk(leaf: Leaf, read: ReadChunk, blocks: Blocks): Generator<number, ChunkSummary | undefined> {
    const { offset, storedBytes, rawBytes } = read;
    if (offset !== this.end) {
      this.#tell("footer", offset, `it has column ${nameOf(leaf)} at a wrong place`);
      return undefined;
    }
    this.end += storedBytes;
    if (!(this.end <= this.#file.trailer.indexOffset)) {
      this.#tell("footer", offset, `it has column ${nameOf(leaf)} outside the pages`);
      return undefined;
    }
    const chunk = new ChunkWalk(this.#file, leaf, blocks);
    for (let at = offset; at < this.end; ) {
      let page: PageHeader;
      try {
        page = chunk.page(at, Math.min(this.end - at, maxPageHeaderBytes), this.end);
      } catch (error) {
        this.#tell(chunk.part, at, (error as Error).message);
        yield this.end - at;
        return undefined;
      }
      const bytes = page.headerBytes + page.storedBytes;
      at += bytes;
      yield bytes;
    }
    const summary = chunk.finish(offset, storedBytes);
    if (summary.rawBytes !== rawBytes) {
      this.#tell("footer", offset, `column ${nameOf(leaf)} has ${summary.rawBytes} raw bytes`);
      return undefined;
    }
    return summary;
  }

  #tell(part: string, offset: number, message: string): void {
    this.isDamaged = true;
    this.#file.onDamage({ part, offset, message });
  }
}

/** Holds page indexes and footer against what they must be, byte by byte. */
function compareMetadata(file: VerifiedFile, rowGroups: RowGroupSummary[], at: number): void {
  const { reader, index, trailer, footer, footerBytes, onDamage } = file;
  if (footer.createdBy !== createdBy) {
    onDamage({ part: "footer", message: `it was written by the unknown "${footer.createdBy}"` });
    return;
  }
  const { bytes, places } = encodePageIndexes(rowGroups, at);
  const filters = index.filters()?.groups[0]?.offset ?? trailer.indexOffset;
  const isWhole = at + bytes.length <= filters;
  if (!isWhole || Buffer.compare(reader.read(at, bytes.length), bytes) !== 0) {
    onDamage({ part: "page indexes", offset: at, message: "they are not those of the pages" });
  }
  const { indexOffset, indexBytes, indexCrc } = trailer;
  const wanted = encodeFooter(
    {
      schema: footer.schema,
      rowCount: index.rowCount,
      rowGroups,
      keyValues: [
        ["skald.version", "1"],
        ["skald.index", indexPlace(indexOffset, indexBytes, indexCrc)],
      ],
      createdBy,
    },
    places,
  );
  if (Buffer.compare(wanted, footerBytes) !== 0 || !hasColumnsOf(footer, index)) {
    onDamage({ part: "footer", message: "it is not that of the pages and the index" });
  }
}

function hasColumnsOf({ leaves }: ReadFooter, index: SegmentIndex): boolean {
  const columns = leaves.flatMap((leaf) => columnOf(leaf, index) ?? []);
  const names = new Set(index.streams.names);
  return (
    columns.length === index.columnCount &&
    leaves.every((leaf) => !isLabel(leaf) || names.has(leaf.path[1] as string))
  );
}
