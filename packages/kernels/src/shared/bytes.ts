// Bytes as both forms of the kernels handle them, and the one error that they throw.

/** SIMD loops may read this many bytes behind the last byte of a column; they never use them. */
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

/**
 * Copies the bytes `from .. to` of `source` to `target`, beginning at `at`; the two do not overlap. `set` of a typed
 * array goes byte by byte where one side is shared memory and the other is aligned differently: a third of the speed.
 */
export function copyBytes(
  source: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): void {
  if (to - from <= maxLoopBytes)
    for (let i = from, t = at; i < to; i++, t++) target[t] = source[i]!;
  else if (copyOfNode === undefined) target.set(source.subarray(from, to), at);
  else if (at + to - from > target.length) throw new RangeError("offset is out of bounds");
  else copyOfNode.call(source, target, at, from, to);
}

/** Short ranges are cheaper byte by byte than through a call. */
const maxLoopBytes = 32;

/** Node's copy takes any `Uint8Array`, and copies less than it was asked for where the target ends. */
const copyOfNode = typeof Buffer === "undefined" ? undefined : Buffer.prototype.copy;

/** Whether two ranges of `length` bytes are equal; only bytes of both arrays may be asked for. */
export function equalBytes(
  a: Uint8Array,
  aStart: number,
  b: Uint8Array,
  bStart: number,
  length: number,
): boolean {
  if (length > maxCompareLoopBytes && compareOfNode !== undefined) {
    return compareOfNode.call(a, b, bStart, bStart + length, aStart, aStart + length) === 0;
  }
  for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}

const maxCompareLoopBytes = 64;
const compareOfNode = typeof Buffer === "undefined" ? undefined : Buffer.prototype.compare;

type Column = Uint8Array | Int32Array | Uint32Array | Float64Array;

/** A copy of a column with room for `length` values, which must not be below the old length; the new values are 0. */
export function grown<T extends Column>(column: T, length: number): T {
  const longer = new (column.constructor as new (length: number) => T)(length);
  longer.set(column);
  return longer;
}

/** CRC-32 (the polynomial of gzip) of the bytes, unsigned; `previous` continues an earlier one. */
export function crc32ByTable(bytes: Uint8Array, previous = 0): number {
  let crc = ~previous;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

const crcTable = Int32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** Why a kernel refused its input: the bytes are not what they claim, or they go beyond a limit. */
export type KernelErrorCode = "corrupt" | "too_large";

/** The only error that kernels throw on bad input. Callers branch on the code and answer 400 or 413. */
export class KernelError extends Error {
  readonly code: KernelErrorCode;

  constructor(code: KernelErrorCode, message: string) {
    super(message);
    this.name = "KernelError";
    this.code = code;
  }
}

export function corrupt(message: string): KernelError {
  return new KernelError("corrupt", message);
}

export function tooLarge(message: string): KernelError {
  return new KernelError("too_large", message);
}

/** The error of a body above the size limit, in the words that clients of the push API know. */
export function bodyTooLarge(bytes: number, maxBytes: number): KernelError {
  return tooLarge(`request body too large: ${bytes} bytes decompressed, limit ${maxBytes} bytes`);
}
