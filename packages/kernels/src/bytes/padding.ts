/** Bytes behind the last byte of a column of bytes that may be read (never used) by SIMD loops. */
export const paddingBytes = 64;

/** A zeroed array of `length` bytes that has the padding behind it in its buffer. */
export function paddedBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(length + paddingBytes), 0, length);
}

/** A padded copy of the bytes. */
export function paddedCopy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = paddedBytes(bytes.length);
  copy.set(bytes);
  return copy;
}
