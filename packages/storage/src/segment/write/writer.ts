import { crc32 } from "node:zlib";
import { ByteWriter } from "../../bytes.js";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "../../files.js";
import {
  encodeFooter,
  encodePageIndexes,
  type FileSummary,
  type RowGroupSummary,
  sumOf,
} from "../../parquet/footer.js";
import { magic } from "../../parquet/format.js";
import { sealLevel, zstd } from "../../zstd.js";
import type { FilterKind } from "../filter/filter-table.js";
import { FilterWriter } from "../filter/filter-writer.js";
import {
  type NameSplit,
  type SegmentLayout,
  type SortedBlock,
  segmentLayout,
  trailerBytes,
  trailerMagic,
} from "../layout.js";
import { type FieldLayout, FieldWriter, noFields } from "./fields.js";
import { SegmentIndexWriter, type WrittenFilters } from "./index-writer.js";
import { RowGroup } from "./row-group.js";

/** Least blocks of a row group, which are 16 MiB of raw lines: the unit in which other readers skip and share out work. */
const groupBlocks = 64;
/** Least rows of a row group, as far as its blocks are not too many: readers that work on vectors lose time between groups. */
const groupRows = 100_000;
const maxGroupBlocks = 3 * groupBlocks;

export interface SegmentWriterOptions {
  /** Where the file appears when it is complete and its bytes are synced (see `sync`). The caller syncs its directory. */
  readonly path: string;
  /** See keys.ts. */
  readonly id: string;
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  /** Canonical label texts, ascending by code unit, none twice. */
  readonly streamTexts: readonly string[];
  /** Every metadata name that blocks may bring. */
  readonly metadata: NameSplit;
  /** Level of zstd; 1 by default. */
  readonly level?: number | undefined;
  /** The kind of its filters; ribbons by default. */
  readonly filters?: FilterKind | undefined;
  /** False leaves out the agreement digests, which help where rows have several copies. */
  readonly digests?: boolean | undefined;
  /** False leaves it to the caller to sync the file, so that no thread waits for the disk. */
  readonly sync?: boolean | undefined;
  /** Ids of the segments that it is merged from. */
  readonly replaces?: readonly string[] | undefined;
  /** Texts whose rows the index lists, the one that is asked for most first; none by default. */
  readonly texts?: readonly string[] | undefined;
  /** Fields of lines to keep as columns; none by default. */
  readonly fields?: FieldLayout | undefined;
}

/** A segment that was written. */
export interface SealedSegment {
  readonly rows: number;
  /** Bytes of the lines. */
  readonly bytes: number;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly sizeBytes: number;
}

/**
 * Writes a segment: blocks in, one Parquet file out, in the layout of docs/formats/segment.md. Holds one row group and
 * the filters in memory. The file appears under its path when `finish` returns; before that, and after `abort`, nothing is
 * there. Blocks the thread, so it belongs in workers.
 */
export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  readonly #layout: SegmentLayout;
  readonly #output: AtomicFile;
  readonly #group: RowGroup;
  readonly #index: SegmentIndexWriter;
  readonly #filters: FilterWriter;
  readonly #fields: FieldWriter;
  readonly #rowGroups: RowGroupSummary[] = [];
  /** Of the columns of fields in row groups that are written. */
  #fieldBytes = 0;
  #rows = 0;
  #bytes = 0;
  #minTime = Number.POSITIVE_INFINITY;
  #maxTime = Number.NEGATIVE_INFINITY;

  constructor(options: SegmentWriterOptions) {
    this.#options = options;
    this.#layout = segmentLayout({ ...options, level: options.level ?? sealLevel });
    this.#fields = new FieldWriter(options.fields ?? noFields);
    // Segments that are not merged yet are small and short-lived, and filters would cost them more than they help.
    const hasBlooms = options.replaces !== undefined;
    this.#group = new RowGroup(this.#layout, this.#fields.names, hasBlooms);
    this.#index = new SegmentIndexWriter(this.#layout, {
      hasDigests: options.digests ?? true,
      texts: options.texts ?? [],
    });
    this.#filters = new FilterWriter(options.filters ?? "ribbon", this.#layout.metadataMore);
    this.#output = new AtomicFile(options.path, options);
    this.#output.write(Buffer.from(magic, "latin1"));
  }

  /** Adds a block; blocks come in the order of their streams, and within a stream of their times. */
  append(block: SortedBlock): void {
    // Before the pages are encoded, which use the bytes in front of the lines.
    this.#filters.add(block);
    this.#index.summarize(block);
    const fields = this.#fields.find(block, this.#fieldBytes + this.#group.fieldBytes);
    this.#index.addBlock(block.runs, this.#group.add(block, fields));
    this.#rows += block.rowCount;
    for (let r = 0; r < block.runs.count; r++) {
      this.#bytes += block.runs.lineBytes[r]!;
      this.#minTime = Math.min(this.#minTime, block.runs.minTime[r]!);
      this.#maxTime = Math.max(this.#maxTime, block.runs.maxTime[r]!);
    }
    const { blockCount, rowCount } = this.#group;
    if (blockCount < groupBlocks) return;
    if (rowCount >= groupRows || blockCount === maxGroupBlocks) this.#endGroup();
  }

  /** Writes indexes and footer, and puts the file in its place. A segment without rows is refused. */
  finish(): SealedSegment {
    if (this.#rows === 0) throw new Error(`segment ${this.#options.id} has no rows`);
    if (this.#group.blockCount > 0) this.#endGroup();
    const pageIndexes = encodePageIndexes(this.#rowGroups, this.#output.sizeBytes);
    this.#output.write(pageIndexes.bytes);
    const filters = this.#writeFilters();
    const indexOffset = this.#output.sizeBytes;
    const footer = (place: string) => encodeFooter(this.#fileSummary(place), pageIndexes.places);
    // The index states the length of the footer and the footer names the index, in figures of fixed width.
    const footerBytes = footer(indexPlace(0, 0, 0)).byteLength;
    const index = this.#encodeIndex(indexOffset, footerBytes, filters);
    const indexCrc = crc32(index);
    const tail = new ByteWriter(index.byteLength + footerBytes + trailerBytes + 8);
    tail.append(index);
    tail.u64(BigInt(indexOffset));
    tail.u32(index.byteLength);
    tail.u32(indexCrc);
    tail.append(Buffer.from(trailerMagic, "latin1"));
    tail.append(footer(indexPlace(indexOffset, index.byteLength, indexCrc)));
    tail.u32(footerBytes);
    tail.append(Buffer.from(magic, "latin1"));
    this.#output.write(tail.view());
    this.#output.finish();
    return this.#summary();
  }

  /** Gives up: nothing stays on disk. */
  abort(): void {
    this.#output.abort();
  }

  #endGroup(): void {
    const { group, paged, fields, parts } = this.#group.seal(this.#output.sizeBytes);
    for (const part of parts) this.#output.write(part);
    this.#rowGroups.push(group);
    this.#index.addGroup(paged, fields);
    this.#fieldBytes += sumOf(fields, ({ storedBytes }) => storedBytes);
    this.#group.clear();
  }

  #writeFilters(): WrittenFilters {
    this.#filters.finish();
    const offset = this.#output.sizeBytes;
    const { kind, groups, blocks } = this.#filters;
    for (const { bits } of groups) this.#output.write(bits);
    return { offset, kind, groups, blocks };
  }

  #encodeIndex(indexOffset: number, footerBytes: number, filters: WrittenFilters): Uint8Array {
    const { id, tenant, replaces } = this.#options;
    const times = { minTime: this.#minTime, maxTime: this.#maxTime };
    const counts = { rowCount: this.#rows, lineBytes: this.#bytes, ...times };
    const summary = { id, tenant, replaces, ...counts, footerBytes, indexOffset };
    const raw = this.#index.finish(summary, filters, this.#fields);
    return zstd.compress(raw, this.#layout.level);
  }

  #fileSummary(indexPlaceText: string): FileSummary {
    return {
      schema: this.#group.schema(),
      rowCount: this.#rows,
      rowGroups: this.#rowGroups,
      keyValues: [
        ["skald.version", "1"],
        ["skald.index", indexPlaceText],
      ],
      createdBy,
    };
  }

  #summary(): SealedSegment {
    const { baseNs } = this.#options;
    return {
      rows: this.#rows,
      bytes: this.#bytes,
      minNs: baseNs + BigInt(this.#minTime),
      maxNs: baseNs + BigInt(this.#maxTime),
      sizeBytes: this.#output.sizeBytes,
    };
  }
}

/** Readers parse this form, `<name> version <x.y.z> (build <text>)`, to work around bugs of writers that they know. */
export const createdBy = "skald version 1.0.0 (build segment-2)";
/** Files of this build have no bounds of metadata and fields, and do not say how they are sorted. */
export const createdByFirst = "skald version 1.0.0 (build segment-1)";

/** The value of the key `skald.index` in the footer, in figures of fixed width. */
export function indexPlace(offset: number, length: number, crc: number): string {
  const pad = (value: number, digits: number) => String(value).padStart(digits, "0");
  return `${pad(offset, 16)},${pad(length, 10)},${pad(crc, 10)}`;
}

/**
 * A file that appears under its name only when its bytes are complete and on disk: it is written as `<path>.tmp`, synced
 * unless `sync` is false, and renamed. The caller syncs the directory. Blocks the thread.
 */
class AtomicFile {
  readonly path: string;
  readonly #temporaryPath: string;
  readonly #sync: boolean;
  #fd: number | undefined;
  #sizeBytes = 0;

  constructor(path: string, options: { readonly sync?: boolean | undefined }) {
    this.path = path;
    this.#sync = options.sync ?? true;
    this.#temporaryPath = `${path}.tmp`;
    this.#fd = openSync(this.#temporaryPath, "w");
  }

  /** Bytes written so far, which is the place of the next write. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  write(bytes: Uint8Array): void {
    const fd = this.#openFd();
    let done = 0;
    while (done < bytes.byteLength) done += writeSync(fd, bytes, done, bytes.byteLength - done);
    this.#sizeBytes += bytes.byteLength;
  }

  finish(): void {
    const fd = this.#openFd();
    if (this.#sync) fsyncSync(fd);
    closeSync(fd);
    this.#fd = undefined;
    renameSync(this.#temporaryPath, this.path);
  }

  /** Gives up and removes what was written. */
  abort(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    rmSync(this.#temporaryPath, { force: true });
  }

  #openFd(): number {
    if (this.#fd === undefined) throw new Error(`segment ${this.path} is closed already`);
    return this.#fd;
  }
}
