import {
  type BytesColumn,
  type DictionaryColumn,
  type MetadataColumn,
  paddingBytes,
} from "@skald/model";

/** The values of a column row by row, read by now. */
export function asBytes(column: MetadataColumn): BytesColumn {
  if (column.kind === "dictionary") return spread(column);
  const { bytes, offsets } = column;
  return { bytes, offsets };
}

/** The values that codes stand for, one behind the other. */
export function spread({ codes, dictionary }: DictionaryColumn): BytesColumn {
  const { bytes: all, offsets: starts } = dictionary;
  const offsets = new Uint32Array(codes.length + 1);
  let total = 0;
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row]!;
    total += starts[code + 1]! - starts[code]!;
    offsets[row + 1] = total;
  }
  const bytes = new Uint8Array(total + paddingBytes);
  let at = 0;
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row]!;
    const to = starts[code + 1]!;
    for (let from = starts[code]!; from < to; from++) bytes[at++] = all[from]!;
  }
  return { bytes, offsets };
}
