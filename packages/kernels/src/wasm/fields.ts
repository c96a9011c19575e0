import { checkFieldNames, type FieldColumns } from "../shared/fields.js";
import type { Kernels } from "../shared/kernels.js";
import type { RowSelection } from "../shared/search.js";
import type { FieldScanInput, KernelExports } from "./abi.js";
import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/fields.ts. */
export const scanJsonFields =
  (memory: KernelMemory): Kernels["scanJsonFields"] =>
  (bytes, offsets, selection, names, out, options) => {
    const input = { bytes, offsets, selection, out, ...namedFields(names) };
    scanFields(memory, input, (kernels, addresses) =>
      kernels.scanJsonFields(...addresses, options.enough, options.complete ? 1 : 0),
    );
  };

/** The compiled form of twin/fields.ts. */
export const scanLogfmtFields =
  (memory: KernelMemory): Kernels["scanLogfmtFields"] =>
  (bytes, offsets, selection, names, out, options) => {
    const { strict, keepEmpty, lastWins, enough } = options;
    const input = { bytes, offsets, selection, out, ...namedFields(names) };
    scanFields(memory, input, (kernels, addresses) =>
      kernels.scanLogfmtFields(
        ...addresses,
        enough,
        strict ? 1 : 0,
        keepEmpty ? 1 : 0,
        lastWins ? 1 : 0,
      ),
    );
  };

/** The compiled form of twin/json-keys.ts. */
export const scanJsonKeys =
  (memory: KernelMemory): Kernels["scanJsonKeys"] =>
  (bytes, offsets, selection, keys, out, { enough }) => {
    const input = { bytes, offsets, selection, out, ...namedFields(keys) };
    scanFields(memory, input, (kernels, addresses) => kernels.scanJsonKeys(...addresses, enough));
  };

/** The compiled form of twin/pattern.ts. */
export const scanPattern =
  (memory: KernelMemory): Kernels["scanPattern"] =>
  (bytes, offsets, selection, pattern, out) => {
    const { texts, columns, columnCount } = pattern;
    const table = textTable(fieldTables, texts, (text) => [text]);
    const input = { bytes, offsets, selection, out, table, fieldCount: columnCount };
    scanFields(memory, input, (kernels, addresses) => {
      const words = new Uint32Array(columns.buffer, columns.byteOffset, columns.length);
      kernels.scanPattern(...addresses, memory.copyInWords(words, words.length), columnCount);
    });
  };

interface FieldInput {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly selection: RowSelection;
  /** The texts that are looked for; see `textTable`. */
  readonly table: Uint8Array;
  readonly fieldCount: number;
  readonly out: FieldColumns;
}

function namedFields(names: readonly string[]): Pick<FieldInput, "table" | "fieldCount"> {
  checkFieldNames(names);
  return { table: textTable(fieldTables, names, (name) => [name]), fieldCount: names.length };
}

function scanFields(
  memory: KernelMemory,
  { bytes, offsets, selection, table, fieldCount, out }: FieldInput,
  scan: (kernels: KernelExports, addresses: FieldScanInput) => void,
): void {
  const { rows, count } = selection;
  if (count === 0) return;
  const firstRow = rows[0]!;
  const endRow = rows[count - 1]! + 1;
  const high = Math.min(offsets[endRow]!, bytes.length);
  const low = Math.min(offsets[firstRow]!, high);
  const kernels = memory.open();
  try {
    const cells = fieldCount * count;
    const text = memory.copyIn(bytes.subarray(low, high));
    const ends = memory.copyIn(bytesOf(offsets.subarray(firstRow, endRow + 1)));
    const rowsAt = memory.copyInWords(rows, count);
    const namesAt = memory.copyIn(table);
    const starts = memory.take(cells * 4);
    const lengths = memory.take(cells * 4);
    const kinds = memory.take(cells);
    const isRead = memory.take(count);
    const offsetsAt = ends - firstRow * 4;
    scan(kernels, [
      ...([text - low, low, high, offsetsAt, rowsAt, count] as const),
      ...([namesAt, starts, lengths, kinds, isRead] as const),
    ]);
    for (let field = 0; field < fieldCount; field++) {
      const from = field * count;
      const to = field * out.capacity;
      out.start.set(memory.words(starts + from * 4, count), to);
      out.length.set(memory.words(lengths + from * 4, count), to);
      out.kind.set(memory.bytes(kinds + from, count), to);
    }
    out.isRead.set(memory.bytes(isRead, count));
  } finally {
    memory.close();
  }
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** The compiled form of twin/levels.ts: only the part of the bytes that the rows lie in is copied. */
export const detectLevels =
  (memory: KernelMemory): Kernels["detectLevels"] =>
  (bytes, lineStart, lineLength, rows, out, options) => {
    if (rows === 0) return;
    let low = bytes.length;
    let high = 0;
    for (let row = 0; row < rows; row++) {
      const start = lineStart[row]!;
      if (start < low) low = start;
      if (start + lineLength[row]! > high) high = start + lineLength[row]!;
    }
    high = Math.min(high, bytes.length);
    low = Math.min(low, high);
    const kernels = memory.open();
    try {
      const text = memory.copyIn(bytes.subarray(low, high));
      const fields = memory.copyIn(textTable(levelTables, options.fields, withFolded));
      const starts = memory.copyInWords(lineStart, rows);
      const lengths = memory.copyInWords(lineLength, rows);
      const levels = memory.take(rows);
      const depth = Math.max(0, Math.min(options.jsonMaxDepth, 0x7fffffff));
      kernels.detectLevels(text - low, high, starts, lengths, rows, levels, fields, depth);
      out.set(memory.bytes(levels, rows));
    } finally {
      memory.close();
    }
  };

/** The spellings of a level field: JSON compares case, logfmt does not. */
function withFolded(name: string): readonly string[] {
  return [name, name.toLowerCase()];
}

const encoder = new TextEncoder();
const fieldTables = new WeakMap<readonly string[], Uint8Array>();
const levelTables = new WeakMap<readonly string[], Uint8Array>();

/**
 * Lays out the texts of each name as the compiled scans read them: a count of names, then where each text
 * starts and its length, u32 each, then the texts. A table is made once for each list of names, because a plan or a
 * tenant asks for the same list again.
 */
function textTable(
  tables: WeakMap<readonly string[], Uint8Array>,
  names: readonly string[],
  textsOf: (name: string) => readonly string[],
): Uint8Array {
  const known = tables.get(names);
  if (known !== undefined) return known;
  const texts = names.flatMap((name) => textsOf(name).map((text) => encoder.encode(text)));
  let at = 4 + texts.length * 8;
  const table = new Uint8Array(texts.reduce((sum, text) => sum + text.length, at));
  const view = new DataView(table.buffer);
  view.setUint32(0, names.length, true);
  for (const [i, text] of texts.entries()) {
    view.setUint32(4 + i * 8, at, true);
    view.setUint32(8 + i * 8, text.length, true);
    table.set(text, at);
    at += text.length;
  }
  tables.set(names, table);
  return table;
}
