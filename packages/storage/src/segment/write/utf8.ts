import { isUtf8 } from "node:buffer";

/** True when each of the values, which lie one behind the other in `bytes`, is UTF-8 by itself. */
export function areUtf8(bytes: Uint8Array, lengths: Uint32Array, count: number): boolean {
  if (!isUtf8(bytes)) return false;
  // The whole is valid, so a value is cut inside a character only if the next begins with its continuation.
  let at = 0;
  for (let i = 0; i < count; i++) {
    const length = lengths[i] as number;
    if (length > 0 && ((bytes[at] as number) & 0xc0) === 0x80) return false;
    at += length;
  }
  return true;
}
