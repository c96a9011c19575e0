/** `ArrayBuffer.prototype.transfer`, which Node 20 lacks. */
interface Transferable {
  transfer?(bytes: number): ArrayBuffer;
}

/** Less is not worth the call. */
const minBytes = 4096;

/**
 * Gives the memory of a buffer back that nobody reads any more; it is empty then. V8 counts what buffers hold as part of the heap, so bodies that arrive
 * in buffers of 64 KiB would have it mark the whole heap after every 50 MB of them. Leaves a buffer alone that is a view of a larger one.
 */
export function freeBuffer(buffer: Uint8Array): void {
  const { byteLength } = buffer.buffer;
  if (byteLength < minBytes || byteLength !== buffer.length) return;
  (buffer.buffer as Transferable).transfer?.(0);
}
