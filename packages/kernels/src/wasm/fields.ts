import type { FieldColumns, JsonFieldOptions, LogfmtFieldOptions } from "../fields/columns.js";
import type { RowSelection } from "../search/selection.js";
import * as twinJson from "../twin/fields/json.js";
import * as twinLogfmt from "../twin/fields/logfmt.js";
import type { FieldScanInput, KernelExports } from "./abi.js";
import type { KernelMemory } from "./memory.js";

/** The compiled scans have a bit for each name. */
const maxNames = 32;

/** The compiled form of twin/json-fields.ts. */
export function scanJsonFields(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: JsonFieldOptions,
): void {
  if (names.length > maxNames) {
    twinJson.scanJsonFields(bytes, offsets, selection, names, out, options);
    return;
  }
  const input = { bytes, offsets, selection, names, out };
  scanFields(memory, input, (kernels, addresses) =>
    kernels.scanJsonFields(...addresses, options.complete ? 1 : 0),
  );
}

/** The compiled form of twin/logfmt-fields.ts. */
export function scanLogfmtFields(
  memory: KernelMemory,
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: LogfmtFieldOptions,
): void {
  if (names.length > maxNames) {
    twinLogfmt.scanLogfmtFields(bytes, offsets, selection, names, out, options);
    return;
  }
  const { strict, keepEmpty, lastWins } = options;
  const input = { bytes, offsets, selection, names, out };
  scanFields(memory, input, (kernels, addresses) =>
    kernels.scanLogfmtFields(...addresses, strict ? 1 : 0, keepEmpty ? 1 : 0, lastWins ? 1 : 0),
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
    const status = memory.take(count);
    const offsetsAt = ends - firstRow * 4;
    scan(kernels, [
      ...([text - low, low, high, offsetsAt, rowsAt, count] as const),
      ...([namesAt, starts, lengths, kinds, status] as const),
    ]);
    for (let field = 0; field < names.length; field++) {
      const from = field * count;
      const to = field * out.capacity;
      out.start.set(memory.words(starts + from * 4, count), to);
      out.length.set(memory.words(lengths + from * 4, count), to);
      out.kind.set(memory.bytes(kinds + from, count), to);
    }
    out.status.set(memory.bytes(status, count));
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
