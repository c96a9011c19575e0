/** FNV-1a, 32 bits, over UTF-8: the ring token of a stream is that of its tenant followed by its label text. */
export function fnv1a32(...texts: readonly string[]): number {
  let hash = fnvBasis;
  for (const text of texts) {
    const bytes = encoder.encode(text);
    hash = fnv1aBytes(bytes, 0, bytes.length, hash);
  }
  return hash >>> 0;
}

/** FNV-1a, 32 bits with a sign, of a range of bytes; goes on from `hash`. For tables mix the upper bits in. */
export function fnv1aBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  hash: number = fnvBasis,
): number {
  let h = hash;
  for (let i = start; i < end; i++) h = Math.imul(h ^ bytes[i]!, fnvPrime);
  return h;
}

const fnvBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;
const encoder = new TextEncoder();
