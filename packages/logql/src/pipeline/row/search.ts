/** Offset of a text within a range, or -1; for single lines, where the call of a kernel would cost more. */
export function indexOfText(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: Uint8Array,
): number {
  const { length } = text;
  if (length === 0) return start;
  const first = text[0]!;
  const stop = end - length;
  for (let i = start; i <= stop; i++) {
    if (bytes[i] !== first) continue;
    let k = 1;
    while (k < length && bytes[i + k] === text[k]) k++;
    if (k === length) return i;
  }
  return -1;
}

/** True when the range holds the text; with `ignoreCase` the text is lower case and ASCII letters fold. */
export function containsText(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: Uint8Array,
  ignoreCase: boolean,
): boolean {
  if (!ignoreCase) return indexOfText(bytes, start, end, text) >= 0;
  const { length } = text;
  const stop = end - length;
  for (let i = start; i <= stop; i++) {
    let k = 0;
    while (k < length && lower(bytes[i + k]!) === text[k]) k++;
    if (k === length) return true;
  }
  return false;
}

function lower(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte | 32 : byte;
}
