/** What waits for the next messages takes no more than this together; what is larger than a buffer is left to the garbage. */
const maxFreeBytes = 32 * 1024 * 1024;
const maxBufferBytes = 4 * 1024 * 1024;
/** Room that a buffer has beyond what it was made for: the next message is not of the same size. */
const spare = 1.25;
const freeBuffers: Uint8Array[] = [];
let freeBytes = 0;

/**
 * Memory for a message, of arbitrary content. Large messages that are memory of their own are what a process that takes
 * pushes makes most garbage of, and marking its heap because of it costs more than reading them.
 */
export function takeMemory(length: number): Uint8Array {
  const at = freeBuffers.findIndex((buffer) => buffer.length >= length);
  if (at < 0) {
    const size = length > maxBufferBytes ? length : Math.ceil(length * spare);
    return Buffer.allocUnsafeSlow(size).subarray(0, length);
  }
  const [buffer] = freeBuffers.splice(at, 1) as [Uint8Array];
  freeBytes -= buffer.length;
  return buffer.subarray(0, length);
}

/** Takes memory back that came from `takeMemory` and that nobody looks at any more. */
export function giveMemory({ buffer }: Uint8Array): void {
  const { byteLength } = buffer;
  if (byteLength > maxBufferBytes * spare || freeBytes + byteLength > maxFreeBytes) return;
  freeBytes += byteLength;
  freeBuffers.push(new Uint8Array(buffer));
}
