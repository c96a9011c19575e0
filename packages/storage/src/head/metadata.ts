import {
  type BytesColumn,
  detectedLevelName,
  levelInMetadata,
  levelNames,
  type MetadataColumn,
  paddingBytes,
} from "@skald/model";
import type { HeadBlockRef } from "./head-view.js";
import type { HeadBlockColumns } from "./layout.js";

/**
 * The structured metadata of a view of a head block, turned from pairs per row into columns per name. Pairs are
 * sorted by name once, when the first name is asked for; a column is built when it is asked for.
 */
export class HeadMetadata {
  readonly #columns: HeadBlockColumns;
  readonly #rowCount: number;
  readonly #nameIndex = new Map<string, number>();
  readonly #hasLevels: boolean;
  readonly #names: readonly string[];
  /** Pairs by name: those of name n are `#pairs[#starts[n] .. #starts[n+1]]`, and `#rows` has the row of each. */
  readonly #starts: Uint32Array;
  readonly #pairs: Uint32Array;
  readonly #rows: Uint32Array;
  readonly #built = new Map<string, MetadataColumn>();

  constructor(columns: HeadBlockColumns, ref: HeadBlockRef) {
    this.#columns = columns;
    this.#rowCount = ref.rowCount;
    this.#starts = countByName(columns.pairName, ref);
    this.#pairs = new Uint32Array(ref.pairCount);
    this.#rows = new Uint32Array(ref.pairCount);
    const next = this.#starts.slice();
    for (let row = 0; row < ref.rowCount; row++) {
      const end = columns.metaStart[row + 1]!;
      for (let pair = columns.metaStart[row]!; pair < end; pair++) {
        const place = next[columns.pairName[pair]!]!++;
        this.#pairs[place] = pair;
        this.#rows[place] = row;
      }
    }
    for (let i = 0; i < ref.metaNames.length; i++) {
      if (this.#starts[i + 1]! > this.#starts[i]!) {
        this.#nameIndex.set(ref.metaNames[i]!, i);
      }
    }
    this.#hasLevels = columns.levels.subarray(0, ref.rowCount).some(isTableLevel);
    const names = new Set(this.#nameIndex.keys());
    if (this.#hasLevels) names.add(detectedLevelName);
    this.#names = [...names];
  }

  names(): readonly string[] {
    return this.#names;
  }

  column(name: string): MetadataColumn | undefined {
    const known = this.#built.get(name);
    if (known !== undefined) return known;
    const column = this.#build(name);
    if (column !== undefined) this.#built.set(name, column);
    return column;
  }

  #build(name: string): MetadataColumn | undefined {
    const index = this.#nameIndex.get(name);
    if (name === detectedLevelName && this.#hasLevels) return this.#buildLevels(index);
    if (index === undefined) return undefined;
    return { kind: "bytes", ...this.#gather(this.#pairByRow(index)) };
  }

  /** Pair of each row with the name plus one, 0 for none; of a name given twice the last value wins. */
  #pairByRow(index: number): Uint32Array {
    const pairByRow = new Uint32Array(this.#rowCount);
    const end = this.#starts[index + 1]!;
    for (let i = this.#starts[index]!; i < end; i++)
      pairByRow[this.#rows[i]!] = this.#pairs[i]! + 1;
    return pairByRow;
  }

  #gather(pairByRow: Uint32Array): BytesColumn {
    const { valueOffset, values } = this.#columns;
    const offsets = new Uint32Array(this.#rowCount + 1);
    for (let row = 0, end = 0; row < this.#rowCount; row++) {
      const pair = pairByRow[row]!;
      if (pair > 0) end += valueOffset[pair]! - valueOffset[pair - 1]!;
      offsets[row + 1] = end;
    }
    const bytes = new Uint8Array(offsets[this.#rowCount]! + paddingBytes);
    for (let row = 0; row < this.#rowCount; row++) {
      const pair = pairByRow[row]!;
      if (pair === 0) continue;
      let to = offsets[row]!;
      for (let from = valueOffset[pair - 1]!; from < valueOffset[pair]!; from++) {
        bytes[to++] = values[from]!;
      }
    }
    return { bytes, offsets };
  }

  /** Codes of the level table, extended by what rows carry as text; too many texts make it a column of bytes. */
  #buildLevels(index: number | undefined): MetadataColumn {
    const codes = this.#columns.levels.slice(0, this.#rowCount);
    const dictionary: string[] = [...levelNames];
    const texts = index === undefined ? new Map<number, string>() : this.#textsByRow(index);
    const codeOf = new Map(dictionary.map((text, code) => [text, code]));
    for (let row = 0; row < codes.length; row++) {
      if (isTableLevel(codes[row]!)) continue;
      const text = texts.get(row) ?? "";
      let code = codeOf.get(text);
      if (code === undefined) {
        code = dictionary.push(text) - 1;
        codeOf.set(text, code);
      }
      if (code > 255) return this.#levelsAsBytes(texts);
      codes[row] = code;
    }
    const isTable = dictionary.length === levelNames.length;
    return { kind: "dictionary", codes, dictionary: isTable ? levelTable : textsOf(dictionary) };
  }

  #levelsAsBytes(texts: ReadonlyMap<number, string>): MetadataColumn {
    const { levels } = this.#columns;
    const offsets = new Uint32Array(this.#rowCount + 1);
    const parts: Buffer[] = [];
    for (let row = 0, end = 0; row < this.#rowCount; row++) {
      const level = levels[row]!;
      const part = Buffer.from((isTableLevel(level) ? levelNames[level] : texts.get(row)) ?? "");
      parts.push(part);
      end += part.length;
      offsets[row + 1] = end;
    }
    parts.push(Buffer.alloc(paddingBytes));
    return { kind: "bytes", bytes: new Uint8Array(Buffer.concat(parts)), offsets };
  }

  #textsByRow(index: number): Map<number, string> {
    const { valueOffset, values } = this.#columns;
    const arena = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    const texts = new Map<number, string>();
    for (let i = this.#starts[index]!; i < this.#starts[index + 1]!; i++) {
      const pair = this.#pairs[i]!;
      texts.set(this.#rows[i]!, arena.toString("utf8", valueOffset[pair]!, valueOffset[pair + 1]!));
    }
    return texts;
  }
}

/** True for a level that the table names; else the row has none, or has it among its pairs. */
function isTableLevel(code: number): boolean {
  return code !== 0 && code !== levelInMetadata;
}

function countByName(pairName: Uint32Array, { pairCount, metaNames }: HeadBlockRef): Uint32Array {
  const starts = new Uint32Array(metaNames.length + 1);
  for (let pair = 0; pair < pairCount; pair++) starts[pairName[pair]! + 1]!++;
  for (let i = 0; i < metaNames.length; i++) starts[i + 1]! += starts[i]!;
  return starts;
}

/** Bytes of a level of the table, with its name. */
const levelBytes = levelNames.map((level) =>
  level === "" ? 0 : detectedLevelName.length + level.length,
);

/** See `OpenHeadBlock.metadataOffsets`. */
export function metadataOffsetsOf(columns: HeadBlockColumns, ref: HeadBlockRef): Float64Array {
  const { levels, metaStart, pairName, valueOffset } = columns;
  const nameBytes = ref.metaNames.map((name) => Buffer.byteLength(name));
  const offsets = new Float64Array(ref.rowCount + 1);
  for (let row = 0; row < ref.rowCount; row++) {
    let bytes = levelBytes[levels[row]!] ?? 0;
    const end = metaStart[row + 1]!;
    for (let pair = metaStart[row]!; pair < end; pair++) {
      const length = valueOffset[pair + 1]! - valueOffset[pair]!;
      // Pairs are sorted by name; of a name given twice the last one holds.
      const isLast = pair + 1 === end || pairName[pair + 1] !== pairName[pair];
      if (length > 0 && isLast) bytes += nameBytes[pairName[pair]!]! + length;
    }
    offsets[row + 1] = offsets[row]! + bytes;
  }
  return offsets;
}

function textsOf(texts: readonly string[]): BytesColumn {
  const parts = texts.map((text) => Buffer.from(text));
  const offsets = new Uint32Array(parts.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length;
  return { bytes: new Uint8Array(Buffer.concat([...parts, Buffer.alloc(paddingBytes)])), offsets };
}

const levelTable = textsOf(levelNames);
