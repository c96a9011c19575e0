import { crc32 } from "node:zlib";
import { selectAll, selectContains } from "@skald/kernels";
import {
  type Block,
  type BytesColumn,
  errorCodeOf,
  internal,
  sliceOf,
  type TimeSlices,
} from "@skald/model";
import { type ReadFooter, readFooter } from "../../parquet/footer.js";
import { magic } from "../../parquet/format.js";
import { minuteNs } from "../digests.js";
import { groupBytes } from "../filter/filter-table.js";
import { endBytes, parseTrailer, type SegmentTrailer, trailerBytes } from "../layout.js";
import type { SyncRangeReader } from "../range-reader.js";
import type { SegmentIndex } from "../read/index-reader.js";
import { openIndex, openSegment } from "../read/reader.js";
import { hashBlockRows } from "../row-hash.js";
import type { LabelTable, Segment } from "../segment.js";
import { asBytes } from "../spread.js";
import { FieldFinder } from "../write/fields.js";
import { type Damage, verifyPages } from "./verify-pages.js";

/** The result of reading all of a segment. */
export interface SegmentCheck {
  /** Empty when every byte is as it was written. */
  readonly damage: readonly Damage[];
  /** What its index says; undefined when that cannot be read. */
  readonly found: FoundSegment | undefined;
}

/** What the index of a segment says about it as a whole. */
export interface FoundSegment {
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly rows: number;
  /** Bytes of the lines. */
  readonly lineBytes: number;
  readonly sizeBytes: number;
  readonly streams: LabelTable;
}

/**
 * Reads all of a segment and checks it: index, filters, every page and its header, every block decoded, digests, and the
 * metadata of Parquet. Yields the bytes of the file that were read after each page and block; holds one block at a time.
 * The result lists the damage. Throws `newer_version` for a file that a later program wrote, and the errors of reading that
 * are not about contents.
 */
export function* verifySegment(reader: SyncRangeReader): Generator<number, SegmentCheck> {
  const damage: Damage[] = [];
  const onDamage = (one: Damage) => void damage.push(one);
  const attempt = <T>(part: string, act: () => T): T | undefined => {
    try {
      return act();
    } catch (error) {
      if (errorCodeOf(error) === "newer_version") throw error;
      onDamage({ part, message: (error as Error).message });
      return undefined;
    }
  };
  attempt("head", () => checkHead(reader));
  const index = attempt("index", () => openIndex(reader));
  if (index === undefined) {
    yield reader.sizeBytes;
    return { damage, found: undefined };
  }
  attempt("index", () => decodeAll(index));
  const end = readEnd(reader);
  yield reader.sizeBytes - end.trailer.indexOffset;
  yield* verifyFilters(reader, index, onDamage);
  const footer = attempt("footer", () => readFooter(end.footerBytes));
  if (footer !== undefined) yield* pagesOf({ reader, index, ...end, footer, onDamage });
  const before = damage.length;
  const segment = openSegment(reader, index, index.image);
  const ofBlocks: Damage[] = [];
  for (const _ of verifyBlocks(segment, (one) => ofBlocks.push(one))) yield 0;
  // A block with a damaged page cannot be decoded; that is reported once.
  if (before === 0) damage.push(...ofBlocks);
  else
    damage.push(...ofBlocks.filter(({ message }) => !/does not match its checksum/.test(message)));
  return { damage, found: foundOf(segment, index) };
}

function* pagesOf(file: {
  readonly reader: SyncRangeReader;
  readonly index: SegmentIndex;
  readonly trailer: SegmentTrailer;
  readonly footer: ReadFooter;
  readonly footerBytes: Uint8Array;
  readonly onDamage: (damage: Damage) => void;
}): Generator<number, void> {
  try {
    yield* verifyPages(file);
  } catch (error) {
    file.onDamage({ part: "footer", message: (error as Error).message });
  }
}

function checkHead(reader: SyncRangeReader): void {
  const head = Buffer.from(reader.read(0, magic.length)).toString("latin1");
  if (head !== magic) throw new Error("the file does not begin like a parquet file");
}

/** Decodes everything that is otherwise decoded on demand. */
function decodeAll(index: SegmentIndex): void {
  const columns = index.columnCount + index.fieldNames().length;
  for (let column = 0; column < columns; column++) index.pages(column);
  index.more();
  index.filters();
  index.digests();
  index.marks();
  index.levels();
  index.slices();
  const facts = index.facts();
  facts?.texts.forEach((_, text) => void facts.rowCount(text));
}

function* verifyFilters(
  reader: SyncRangeReader,
  index: SegmentIndex,
  onDamage: (damage: Damage) => void,
): Generator<number, void> {
  for (const group of index.filters()?.groups ?? []) {
    const bytes = groupBytes(group);
    if (crc32(reader.read(group.offset, bytes)) !== group.crc) {
      const { offset, from, blocks } = group;
      const part = `filter of blocks ${from} to ${from + blocks - 1}`;
      onDamage({ part, offset, message: "it does not match its checksum" });
    }
    yield bytes;
  }
}

/** The trailer and the footer of a file whose index was read. */
export function readEnd(reader: SyncRangeReader): {
  readonly trailer: SegmentTrailer;
  readonly footerBytes: Uint8Array;
} {
  const last = reader.read(reader.sizeBytes - endBytes, endBytes);
  const length = new DataView(last.buffer, last.byteOffset).getUint32(0, true);
  const from = reader.sizeBytes - endBytes - length;
  const trailer = parseTrailer(reader.read(from - trailerBytes, trailerBytes), length, reader.name);
  return { trailer, footerBytes: reader.read(from, length) };
}

function foundOf(
  { minNs, maxNs, sizeBytes }: { minNs: bigint; maxNs: bigint; sizeBytes: number },
  index: SegmentIndex,
): FoundSegment {
  const { id, tenant, rowCount: rows, lineBytes, streams } = index;
  return { id, tenant, minNs, maxNs, rows, lineBytes, sizeBytes, streams };
}

/** Decodes every block and holds it against what its header, the digests, the marks and the counts of levels say. Yields raw bytes. */
function* verifyBlocks(
  segment: Segment,
  onDamage: (damage: Damage) => void,
): Generator<number, void> {
  const digests = new DigestCheck(segment, onDamage);
  for (let number = 0; number < segment.blockCount; number++) {
    try {
      const block = verifyBlock(segment, number);
      digests.add(block);
      checkMarks(segment.marks(number), block);
    } catch (error) {
      digests.giveUp();
      onDamage({ part: `block ${number}`, message: (error as Error).message });
    }
    yield segment.header(number).rawBytes;
  }
  digests.finish();
}

type DecodedBlock = ReturnType<typeof verifyBlock>;

function verifyBlock(segment: Segment, number: number) {
  const block = segment.block(number);
  const { runs, rowCount } = block;
  const timestamps = block.timestamps();
  const lines = block.lines();
  for (let run = 0; run < runs.count; run++) {
    const from = runs.rowStart[run]!;
    const to = runs.rowStart[run + 1]!;
    for (let row = from + 1; row < to; row++) {
      if (timestamps[row]! < timestamps[row - 1]!) throw internal(`run ${run} goes back in time`);
    }
    if (timestamps[from] !== runs.minTime[run] || timestamps[to - 1] !== runs.maxTime[run])
      throw internal(`run ${run} has other times than its header`);
    if (lines.offsets[to]! - lines.offsets[from]! !== runs.lineBytes[run])
      throw internal(`run ${run} has other lines than its header`);
    const levels = segment.levels(number, run);
    if (levels !== undefined && levels.rows.reduce((sum, rows) => sum + rows, 0) !== to - from)
      throw internal(`run ${run} has counts of levels of other rows`);
    checkSlices(segment.slices(number, run), { timestamps, offsets: lines.offsets, from, to });
  }
  checkRowSets(block);
  checkFields(block);
  const metadata = block.metadataNames().flatMap((name) => {
    const column = block.metadata(name);
    return column === undefined ? [] : [[name, column] as const];
  });
  return { runs, timestamps, hashes: hashBlockRows({ rowCount, timestamps, lines, metadata }) };
}

/** Throws `internal` when a row set is not that of the rows whose lines contain its text. */
function checkRowSets({ facts, rowCount, lines }: Block): void {
  if (facts === undefined) return;
  const { bytes, offsets } = lines();
  for (const [i, text] of facts.texts.entries()) {
    const found = selectAll(rowCount);
    selectContains(bytes, offsets, rowCount, text, found, { ignoreCase: false, negate: false });
    const { count, words } = facts.rowsWith(i);
    const has = (row: number) => ((words[row >> 5]! >>> (row & 31)) & 1) === 1;
    if (count !== found.count || !found.rows.subarray(0, count).every(has))
      throw internal(`the rows of "${Buffer.from(text)}" are not those of its lines`);
  }
}

/** Throws `internal` when the columns of fields are not what is found in the lines. */
function checkFields({ facts, runs, rowCount, lines, field }: Block): void {
  const fields = facts?.fields;
  if (fields === undefined) return;
  const { names, isKeyed, familyOf, irregular } = fields;
  const found = new FieldFinder(names, familyOf).find({ runs, rowCount, lines: lines() });
  for (let row = 0; row < rowCount; row++) {
    if (((irregular.words[row >> 5]! >>> (row & 31)) & 1) !== found.isIrregular[row])
      throw internal(`row ${row} is regular, or not, unlike its line`);
  }
  for (const [i, name] of names.entries()) {
    const column = field?.(name);
    if (!isSameColumn(column && asBytes(column), found.columns[i]))
      throw internal(`the column of field ${name} is not that of the lines`);
    if (isKeyed(name) && ((found.keyed >>> i) & 1) === 0)
      throw internal(`the column of field ${name} is not that of its key`);
  }
}

function isSameColumn(a: BytesColumn | undefined, b: BytesColumn | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const bytes = ({ bytes, offsets }: BytesColumn) => bytes.subarray(offsets[0], offsets.at(-1));
  return (
    a.offsets.every((offset, row) => offset - a.offsets[0]! === b.offsets[row]! - b.offsets[0]!) &&
    Buffer.compare(bytes(a), bytes(b)) === 0
  );
}

/** Throws `internal` when the marks are not those of the rows. */
function checkMarks(marks: Uint32Array | undefined, { hashes: { low } }: DecodedBlock): void {
  if (marks?.every((mark, row) => mark === low[row]) === false)
    throw internal("its marks are not those of its rows");
}

/** Throws `internal` when the rows `from .. to)` are not those of the slices. */
function checkSlices(
  slices: TimeSlices | undefined,
  {
    timestamps,
    offsets,
    from,
    to,
  }: { timestamps: Float64Array; offsets: Uint32Array; from: number; to: number },
): void {
  if (slices === undefined) return;
  let row = from;
  for (let at = slices.from; at < slices.to; at++) {
    const end = row + slices.rows[at]!;
    const slice = slices.first + at - slices.from;
    for (let one = row; one < Math.min(end, to); one++) {
      if (sliceOf(timestamps[one]!, slices.stepNs) !== slice)
        throw internal(`slice ${slice} has rows of other times`);
    }
    if (end > to || offsets[end]! - offsets[row]! !== slices.lineBytes[at])
      throw internal(`slice ${slice} has other lines than its rows`);
    row = end;
  }
  if (row !== to) throw internal("slices have fewer rows than their run");
}

/** Sums row hashes over the blocks of a stream, minute by minute, and compares them with its digests. */
class DigestCheck {
  readonly #segment: Segment;
  readonly #onDamage: (damage: Damage) => void;
  #stream = -1;
  #minutes = new Map<number, { rows: number; low: number; high: number }>();
  #isKnown = true;

  constructor(segment: Segment, onDamage: (damage: Damage) => void) {
    this.#segment = segment;
    this.#onDamage = onDamage;
  }

  add({ runs, timestamps, hashes }: DecodedBlock): void {
    for (let run = 0; run < runs.count; run++) {
      if (runs.stream[run] !== this.#stream) this.#open(runs.stream[run]!);
      for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
        const minute = Math.floor(timestamps[row]! / minuteNs);
        let sums = this.#minutes.get(minute);
        if (sums === undefined) {
          sums = { rows: 0, low: 0, high: 0 };
          this.#minutes.set(minute, sums);
        }
        sums.rows++;
        sums.low = (sums.low + hashes.low[row]!) >>> 0;
        sums.high = (sums.high + hashes.high[row]!) >>> 0;
      }
    }
  }

  /** The current stream, and the streams of a block, have rows that were not read. */
  giveUp(): void {
    this.#isKnown = false;
  }

  finish(): void {
    const stream = this.#stream;
    if (stream < 0 || !this.#isKnown) return;
    const digests = this.#segment.digests(stream);
    if (digests === undefined) return;
    const isSame =
      digests.minutes.length === this.#minutes.size &&
      digests.minutes.every((minute, i) => {
        const own = this.#minutes.get(minute);
        return (
          own !== undefined &&
          own.rows === digests.rows[i] &&
          own.low === digests.sums[2 * i] &&
          own.high === digests.sums[2 * i + 1]
        );
      });
    if (isSame) return;
    this.#onDamage({
      part: `digests of stream ${this.#segment.text(stream)}`,
      message: "they are not those of the rows",
    });
  }

  #open(stream: number): void {
    this.finish();
    this.#stream = stream;
    this.#minutes = new Map();
  }
}
