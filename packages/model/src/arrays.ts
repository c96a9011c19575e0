/**
 * The first index in [from, to) at which a condition holds, by halving; `to` where there is none. From the first one on it
 * must hold everywhere.
 */
export function firstIndex(from: number, to: number, holds: (index: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The place of the first of some ascending numbers that is not below the wanted one, in [from, to) or `to`. */
export function lowerBound(
  ascending: ArrayLike<number>,
  wanted: number,
  from = 0,
  to = ascending.length,
): number {
  return firstIndex(from, to, (index) => ascending[index]! >= wanted);
}

/** The place of a number among ascending ones; -1 when it is not there. */
export function placeAmong(ascending: ArrayLike<number>, wanted: number): number {
  const place = lowerBound(ascending, wanted);
  return ascending[place] === wanted ? place : -1;
}

/** What newer versions of JavaScript have. */
interface Transferable {
  readonly transfer?: (byteLength: number) => unknown;
}

/** To give less back makes ordinary queries a tenth dearer. Reads from connections and pools of buffers are smaller. */
const minLargeBytes = 4 * 1024 * 1024;

/**
 * Gives the memory of an array back at once if there is much of it, because a thread collects garbage late. All that lies in that
 * memory is empty then.
 */
export function freeBytes({ buffer }: Uint8Array, minBytes = minLargeBytes): void {
  if (buffer.byteLength >= minBytes) (buffer as Transferable).transfer?.(0);
}

/** Less is not worth the call. */
const minBufferBytes = 4096;

/**
 * Gives the memory of a buffer back at once that nobody reads any more; it is empty then. V8 counts what buffers hold as part of the heap, so
 * what bodies arrive in would have it mark the whole heap after every 50 MB. Leaves a buffer alone that is a view of a larger one.
 */
export function freeBuffer(bytes: Uint8Array): void {
  if (bytes.byteLength === bytes.buffer.byteLength) freeBytes(bytes, minBufferBytes);
}

/** The part of its memory that a large array must take to keep all of it. */
const mostOfMemory = 7 / 8;

/** Whether an array takes all of its memory, or is large and takes most: then it shares it with no other, and a copy would gain nothing. */
export function takesMemory({ byteLength, buffer }: Uint8Array): boolean {
  const isLarge = byteLength >= minLargeBytes;
  return byteLength >= buffer.byteLength * (isLarge ? mostOfMemory : 1);
}
