/** FNV-1a, 32 bits, over UTF-8: the ring token of a stream is that of its tenant followed by its label text. */
export function fnv1a32(...texts: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const text of texts) {
    for (const byte of encoder.encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}

const encoder = new TextEncoder();
