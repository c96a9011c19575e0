import {
  type FieldColumns,
  fieldColumns,
  fieldKind,
  maxFields,
  type RowSelection,
  scanJsonFields,
  scanJsonKeys,
  scanLogfmtFields,
} from "@skald/kernels";
import { type BytesColumn, fieldFamily, paddingBytes } from "@skald/model";
import type { SectionWriter } from "../index-sections.js";
import { section } from "../index-sections.js";
import type { SortedBlock } from "../layout.js";

/** Which fields of lines a segment has as columns. */
export interface FieldLayout {
  /** Names of labels, sorted. */
  readonly names: readonly string[];
  /** Bytes that the columns may take; blocks behind that have none. */
  readonly maxBytes: number;
}

export const noFields: FieldLayout = { names: [], maxBytes: 0 };

/** Most columns of one file: one call of a kernel finds them all. */
export const maxFieldColumns = 24;
/** A row with a longer value is left to the parser. */
const maxValueBytes = 256;

/** Collects the fields of the lines of a segment while its blocks are written. */
export class FieldWriter {
  readonly #layout: FieldLayout;
  readonly #finder: FieldFinder;
  /** By stream, how its lines are parsed: `fieldFamily`. */
  readonly #families: number[] = [];
  /** Per block, 1 when its rows were looked at. */
  readonly #covered: number[] = [];
  /** Per block, a bit for each name: see `FieldFacts.isKeyed`. */
  readonly #keyed: number[] = [];
  /** Rows of the segment that only the parser may judge. */
  readonly #irregular: number[] = [];
  #rows = 0;

  constructor(layout: FieldLayout) {
    this.#layout = layout;
    this.#finder = new FieldFinder(layout.names, (stream) => this.#families[stream]!);
  }

  get names(): readonly string[] {
    return this.#layout.names;
  }

  /** The columns of a block; undefined for a block without any, as when those of earlier blocks took all bytes. */
  find(block: SortedBlock, storedBytes: number): readonly (BytesColumn | undefined)[] | undefined {
    const { names, maxBytes } = this.#layout;
    if (names.length === 0) return undefined;
    const first = this.#rows;
    const isOver = storedBytes >= maxBytes;
    this.#rows += block.rowCount;
    this.#covered.push(isOver ? 0 : 1);
    this.#noteFamilies(block);
    if (isOver) {
      this.#keyed.push(0);
      return undefined;
    }
    const { columns, isIrregular, keyed } = this.#finder.find(block);
    this.#keyed.push(keyed);
    for (let row = 0; row < block.rowCount; row++) {
      if (isIrregular[row] === 1) this.#irregular.push(first + row);
    }
    return columns;
  }

  finish(sections: SectionWriter): void {
    const { names } = this.#layout;
    if (names.length === 0) return;
    sections.texts(section.fieldNames, names);
    sections.codes(section.fieldFamilies, this.#families);
    sections.codes(section.fieldBlocks, this.#covered);
    sections.numbers(section.fieldIrregular, this.#irregular);
    sections.numbers(section.fieldKeys, this.#keyed);
  }

  /** Streams ascend over blocks, so a new one is seen with its first rows. */
  #noteFamilies(block: SortedBlock): void {
    const { count, stream } = block.runs;
    for (let run = 0; run < count; run++) {
      if (stream[run]! === this.#families.length) this.#families.push(guessFamily(block, run));
    }
  }
}

/** What the parsers of some streams find in the lines of blocks, under some names. */
export class FieldFinder {
  readonly #names: readonly string[];
  readonly #familyOf: (stream: number) => number;
  readonly #selection: RowSelection = { rows: new Uint32Array(0), count: 0 };
  #found: FieldColumns = fieldColumns(0, 0);
  /** Lists of names by their bits. */
  readonly #lists = new Map<number, readonly string[]>();

  constructor(names: readonly string[], familyOf: (stream: number) => number) {
    this.#names = names;
    this.#familyOf = familyOf;
  }

  /**
   * One column for each name: what the parser stage of the family of each row finds. A row that a kernel does not judge
   * (malformed), or with a value that has escapes or bytes beyond ASCII, or is empty or long, is irregular: it has no values, and a
   * query parses its line.
   */
  find(block: BlockLines): FoundFields {
    const values = new FieldValues(this.#names.length, block.rowCount);
    this.#scan(block, fieldFamily.json, values);
    this.#scan(block, fieldFamily.logfmt, values);
    return {
      columns: this.#names.map((_, field) => values.column(field, block.lines.bytes)),
      isIrregular: values.isIrregular,
      keyed: values.keyed,
    };
  }

  /** Searches the rows of the streams of one family. */
  #scan({ runs, rowCount, lines }: BlockLines, family: number, values: FieldValues): void {
    const names = this.#names;
    const selection = this.#selection;
    if (selection.rows.length < rowCount) selection.rows = new Uint32Array(rowCount);
    let count = 0;
    for (let run = 0; run < runs.count; run++) {
      if (this.#familyOf(runs.stream[run]!) !== family) continue;
      const end = runs.rowStart[run + 1]!;
      for (let row = runs.rowStart[run]!; row < end; row++) selection.rows[count++] = row;
    }
    if (count === 0) return;
    selection.count = count;
    if (this.#found.capacity < count) this.#found = fieldColumns(names.length, rowCount);
    const { bytes, offsets } = lines;
    if (family === fieldFamily.json) {
      scanJsonFields(bytes, offsets, selection, names, this.#found, { complete: true, enough: 0 });
    } else scanLogfmtFields(bytes, offsets, selection, names, this.#found, logfmtOptions);
    values.take(this.#found, selection);
    const keys = this.#namesOf(values.keyed);
    if (keys.length === 0) return;
    if (family === fieldFamily.json) {
      scanJsonKeys(bytes, offsets, selection, keys, this.#found, { enough: 2 ** keys.length - 1 });
    } else scanLogfmtFields(bytes, offsets, selection, keys, this.#found, logfmtKeyOptions);
    values.compareKeys(this.#found, selection);
  }

  /** The names whose bits are set: the same list for the same bits, as kernels keep a table for each list. */
  #namesOf(bits: number): readonly string[] {
    const known = this.#lists.get(bits);
    if (known !== undefined) return known;
    if (this.#lists.size === maxNameLists) this.#lists.clear();
    const names = this.#names.filter((_, field) => ((bits >>> field) & 1) === 1);
    this.#lists.set(bits, names);
    return names;
  }
}

type BlockLines = Pick<SortedBlock, "runs" | "rowCount" | "lines">;

interface FoundFields {
  /** Undefined where no row has the field. */
  readonly columns: readonly (BytesColumn | undefined)[];
  /** 1 for rows that only the parser may judge. */
  readonly isIrregular: Uint8Array;
  /** A bit for each name: see `FieldFacts.isKeyed`. */
  readonly keyed: number;
}

const logfmtOptions = { strict: false, keepEmpty: false, lastWins: false, enough: 0 };
/** Those of a stage that names keys. */
const logfmtKeyOptions = { strict: false, keepEmpty: true, lastWins: true, enough: 0 };
/** Lists of names that are kept; blocks of one kind of line have the same. */
const maxNameLists = 256;
/** Rows of a stream that tell how its lines are parsed. */
const sampledRows = 32;

/** What most of the first rows of a run look like. A wrong guess makes rows irregular, and answers stay right. */
function guessFamily({ runs, lines }: SortedBlock, run: number): number {
  const { bytes, offsets } = lines;
  const from = runs.rowStart[run]!;
  const to = Math.min(runs.rowStart[run + 1]!, from + sampledRows);
  let objects = 0;
  let pairs = 0;
  for (let row = from; row < to; row++) {
    const start = offsets[row]!;
    if (bytes[start] === openBrace && offsets[row + 1]! > start) objects++;
    else if (bytes.subarray(start, offsets[row + 1]).includes(equalsSign)) pairs++;
  }
  if (objects * 2 > to - from) return fieldFamily.json;
  return pairs * 2 > to - from ? fieldFamily.logfmt : fieldFamily.none;
}

const openBrace = 0x7b;
const equalsSign = 0x3d;

/** Where the values of a block are in its lines. */
class FieldValues {
  readonly isIrregular: Uint8Array;
  /** A bit for each field of which all regular rows have a value, which is also that of its key as far as keys were compared. */
  keyed: number;
  readonly #rowCount: number;
  /** Value of field f in row r at f * rowCount + r. */
  readonly #starts: Uint32Array;
  readonly #lengths: Uint32Array;

  constructor(fields: number, rowCount: number) {
    this.isIrregular = new Uint8Array(rowCount);
    this.keyed = 2 ** fields - 1;
    this.#rowCount = rowCount;
    this.#starts = new Uint32Array(fields * rowCount);
    this.#lengths = new Uint32Array(fields * rowCount);
  }

  take(found: FieldColumns, { rows, count }: RowSelection): void {
    const { isRead, kind, start, length, capacity, fieldCount } = found;
    const rowCount = this.#rowCount;
    for (let i = 0; i < count; i++) if (isRead[i] !== 1) this.isIrregular[rows[i]!] = 1;
    for (let field = 0; field < fieldCount; field++) {
      for (let i = 0, place = field * capacity; i < count; i++, place++) {
        const is = kind[place]!;
        if (is === fieldKind.absent) continue;
        const row = rows[i]!;
        const bytes = length[place]!;
        if (is !== fieldKind.plain || bytes === 0 || bytes > maxValueBytes) {
          this.isIrregular[row] = 1;
        }
        this.#starts[field * rowCount + row] = start[place]!;
        this.#lengths[field * rowCount + row] = bytes;
      }
    }
    for (let field = 0; field < fieldCount; field++) {
      const from = field * rowCount;
      const lacks = (row: number) => this.#lengths[from + row] === 0 && this.isIrregular[row] === 0;
      for (let i = 0; i < count; i++) {
        if (!lacks(rows[i]!)) continue;
        this.keyed &= ~(1 << field);
        break;
      }
    }
  }

  /** Compares the values of rows that were taken with those of keys: of all names that may still be keyed, in their order. */
  compareKeys(found: FieldColumns, { rows, count }: RowSelection): void {
    const { isRead, kind, start, length, capacity } = found;
    for (let i = 0; i < count; i++)
      if (isRead[i] !== 1 && this.isIrregular[rows[i]!] === 0) this.keyed = 0;
    let key = 0;
    for (let rest = this.keyed; rest !== 0; rest &= rest - 1, key++) {
      const field = 31 - Math.clz32(rest & -rest);
      const from = field * this.#rowCount;
      for (let i = 0, place = key * capacity; i < count; i++, place++) {
        const row = rows[i]!;
        if (this.isIrregular[row] === 1) continue;
        const isSame =
          kind[place] !== fieldKind.absent &&
          length[place] === this.#lengths[from + row] &&
          start[place] === this.#starts[from + row];
        if (isSame) continue;
        this.keyed &= ~(1 << field);
        break;
      }
    }
  }

  /** The values of regular rows, one behind the other; undefined when there are none. */
  column(field: number, lines: Uint8Array): BytesColumn | undefined {
    const rowCount = this.#rowCount;
    const from = field * rowCount;
    const lengths = this.#lengths.subarray(from, from + rowCount);
    const offsets = new Uint32Array(rowCount + 1);
    let total = 0;
    for (let row = 0; row < rowCount; row++) {
      if (this.isIrregular[row] === 0) total += lengths[row]!;
      offsets[row + 1] = total;
    }
    if (total === 0) return undefined;
    const bytes = new Uint8Array(total + paddingBytes);
    for (let row = 0; row < rowCount; row++) {
      const at = offsets[row]!;
      const end = offsets[row + 1]!;
      let source = this.#starts[from + row]!;
      for (let to = at; to < end; to++) bytes[to] = lines[source++]!;
    }
    return { bytes, offsets };
  }
}

if (maxFieldColumns > maxFields) throw new Error("a kernel finds fewer fields than that");
