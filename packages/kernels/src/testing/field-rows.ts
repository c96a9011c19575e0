import type { CapturePattern } from "../shared/fields.js";
import { type FieldColumns, fieldColumns, fieldKind } from "../shared/fields.js";
import type { Kernels } from "../shared/kernels.js";
import { type RowSelection, selectAll } from "../shared/search.js";

/** What a scan found in a row: whether it was read, and per found name the kind and the raw text. */
export interface FieldRow {
  readonly isRead: boolean;
  readonly fields: Readonly<Record<string, readonly [kind: number, text: string]>>;
}

type Scan = (
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
) => void;

/** Runs a scan over lines of latin1 text, which stand one behind the other. */
function scanRows(scan: Scan, lines: readonly string[], names: readonly string[]): FieldRow[] {
  const bytes = Buffer.from(lines.join(""), "latin1");
  const offsets = new Uint32Array(lines.length + 1);
  for (let i = 0; i < lines.length; i++) offsets[i + 1] = offsets[i]! + lines[i]!.length;
  const out = fieldColumns(names.length, lines.length + 1);
  out.kind.fill(99);
  scan(bytes, offsets, selectAll(lines.length), names, out);
  return lines.map((_, row) => ({
    isRead: out.isRead[row] === 1,
    fields: Object.fromEntries(
      names.flatMap((name, field) => {
        const slot = field * out.capacity + row;
        const start = out.start[slot]!;
        const text = bytes.toString("latin1", start, start + out.length[slot]!);
        const kind = out.kind[slot]!;
        return kind === fieldKind.absent ? [] : [[name, [kind, text]]];
      }),
    ),
  }));
}

/** `early`: a line is left once all fields are found, and objects in which none can be are passed over. */
export function jsonRows(
  kernels: Kernels,
  lines: readonly string[],
  names: readonly string[],
  early: boolean,
): FieldRow[] {
  const options = { complete: !early, enough: early ? allOf(names) : 0 };
  return scanRows((...input) => kernels.scanJsonFields(...input, options), lines, names);
}

export function logfmtRows(
  kernels: Kernels,
  lines: readonly string[],
  names: readonly string[],
  options: Partial<Parameters<Kernels["scanLogfmtFields"]>[5]> = {},
): FieldRow[] {
  const all = { strict: false, keepEmpty: false, lastWins: false, enough: 0, ...options };
  return scanRows((...input) => kernels.scanLogfmtFields(...input, all), lines, names);
}

/** `early`: a line is left once all keys are found. */
export function jsonKeyRows(
  kernels: Kernels,
  lines: readonly string[],
  keys: readonly string[],
  early: boolean,
): FieldRow[] {
  const options = { enough: early ? allOf(keys) : 0 };
  return scanRows((...input) => kernels.scanJsonKeys(...input, options), lines, keys);
}

/** The pieces of the pattern are its texts, and between them the names of its captures, "" for those without a column. */
export function patternRows(
  kernels: Kernels,
  lines: readonly string[],
  texts: readonly string[],
  captures: readonly string[],
): FieldRow[] {
  const names = captures.filter((name) => name !== "");
  let column = 0;
  const columns = Int32Array.from(captures, (name) => (name === "" ? -1 : column++));
  const pattern: CapturePattern = { texts, columns, columnCount: names.length };
  return scanRows(
    (bytes, offsets, selection, _names, out) =>
      kernels.scanPattern(bytes, offsets, selection, pattern, out),
    lines,
    names,
  );
}

function allOf(names: readonly string[]): number {
  return 2 ** names.length - 1;
}
