import {
  checkFieldNames,
  type FieldColumns,
  type JsonFieldOptions,
  type LogfmtFieldOptions,
} from "../fields/columns.js";
import type { RowSelection } from "../search/selection.js";
import type { FieldScanInput, KernelExports } from "./abi.js";
import type { KernelMemory } from "./memory.js";

/** The compiled form of twin/fields/json.ts. */
export function scanJsonFields(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: JsonFieldOptions,
): void {
  const input = { bytes, offsets, selection, names, out };
  scanFields(memory, input, (kernels, addresses) =>
    kernels.scanJsonFields(...addresses, options.enough, options.complete ? 1 : 0),
  );
}

/** The compiled form of twin/fields/logfmt.ts. */
export function scanLogfmtFields(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: LogfmtFieldOptions,
): void {
  const { strict, keepEmpty, lastWins, enough } = options;
  const input = { bytes, offsets, selection, names, out };
  scanFields(memory, input, (kernels, addresses) =>
    kernels.scanLogfmtFields(
      ...addresses,
      enough,
      strict ? 1 : 0,
      keepEmpty ? 1 : 0,
      lastWins ? 1 : 0,
    ),
  );
}

interface FieldInput {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly selection: RowSelection;
  readonly names: readonly string[];
  readonly out: FieldColumns;
}

function scanFields(
  memory: KernelMemory,
  { bytes, offsets, selection, names, out }: FieldInput,
  scan: (kernels: KernelExports, addresses: FieldScanInput) => void,
): void {
  checkFieldNames(names);
  const { rows, count } = selection;
  if (count === 0) return;
  const firstRow = rows[0]!;
  const endRow = rows[count - 1]! + 1;
  const high = Math.min(offsets[endRow]!, bytes.length);
  const low = Math.min(offsets[firstRow]!, high);
  const kernels = memory.open();
  try {
    const cells = names.length * count;
    const text = memory.copyIn(bytes.subarray(low, high));
    const ends = memory.copyIn(bytesOf(offsets.subarray(firstRow, endRow + 1)));
    const rowsAt = memory.copyInWords(rows, count);
    const namesAt = memory.copyIn(nameTable(names));
    const starts = memory.take(cells * 4);
    const lengths = memory.take(cells * 4);
    const kinds = memory.take(cells);
    const isRead = memory.take(count);
    const offsetsAt = ends - firstRow * 4;
    scan(kernels, [
      ...([text - low, low, high, offsetsAt, rowsAt, count] as const),
      ...([namesAt, starts, lengths, kinds, isRead] as const),
    ]);
    for (let field = 0; field < names.length; field++) {
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

const encoder = new TextEncoder();
const tables = new WeakMap<readonly string[], Uint8Array>();

/** A count, then per name where it starts and its length, u32 each; then the names. Kept by list of names. */
function nameTable(names: readonly string[]): Uint8Array {
  const known = tables.get(names);
  if (known !== undefined) return known;
  const texts = names.map((name) => encoder.encode(name));
  let at = 4 + names.length * 8;
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
