/** Overwrites every byte of a range that is no part of valid UTF-8 with a space; the length stays. */
export function blankInvalidUtf8(bytes: Uint8Array, start: number, length: number): void {
  const end = start + length;
  let at = start;
  while (at < end) {
    if (bytes[at]! < 0x80) {
      at++;
      continue;
    }
    const width = sequenceLength(bytes, at, end);
    if (width === 0) bytes[at] = 0x20;
    at += width === 0 ? 1 : width;
  }
}

/** Bytes of the character that begins with the non-ASCII byte at `at`; 0 when it is not valid UTF-8. */
function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at]!;
  const width = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (width === 0 || at + width > end) return 0;
  const second = bytes[at + 1]!;
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let i = 2; i < width; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return width;
}
