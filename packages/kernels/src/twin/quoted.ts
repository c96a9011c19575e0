/** Position of the quote that closes the text from `from` on, -1 without one; an escaped quote closes nothing. */
export function quoteEnd(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === 0x22) return at;
    if (byte === 0x5c) at++;
  }
  return -1;
}
