import type { IncomingMessage } from "node:http";
import { SkaldError, tooLarge } from "@skald/model";

/**
 * Reads a request body of at most `maxBytes`. A declared length beyond that is refused before a byte is read,
 * an undeclared one as soon as it passes the limit; the text names the limit. Rejects with `cancelled` when the
 * client leaves midway. `book` is told of each chunk before it is kept; what it throws refuses the body. A
 * body of several chunks is put together in memory from `take`. A refused body is
 * left where it is: answer through `endResponse`, which drops it.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  book: (chunkBytes: number) => void = () => undefined,
  take: (length: number) => Uint8Array = Buffer.allocUnsafe,
): Promise<Uint8Array> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) return Promise.reject(bodyTooLarge(maxBytes));
  if (request.destroyed && !request.complete) return Promise.reject(clientLeft());
  return new Promise((resolve, reject) => {
    const chunks = new Chunks();
    const refuse = (error: unknown): void => {
      request.off("data", onData);
      request.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      if (chunks.sizeBytes + chunk.length > maxBytes) {
        refuse(bodyTooLarge(maxBytes));
        return;
      }
      try {
        book(chunk.length);
      } catch (error) {
        refuse(error);
        return;
      }
      chunks.add(chunk);
    };
    request.on("data", onData);
    request.once("end", () => resolve(chunks.concat(take)));
    // What is wrong with a half-read request is always that the rest of it does not come.
    request.once("error", () => reject(clientLeft()));
    request.once("close", () => {
      if (!request.complete) reject(clientLeft());
    });
  });
}

/** Chunks below this are copied together: a buffer object for each would cost more than its bytes. */
const minChunkBytes = 4096;
const slabBytes = 64 * 1024;

/** The pieces of a body in few buffers, however small a client makes its chunks. */
class Chunks {
  readonly #parts: Buffer[] = [];
  sizeBytes = 0;
  #slab: Buffer = Buffer.alloc(0);
  #from = 0;
  #to = 0;

  add(chunk: Buffer): void {
    this.sizeBytes += chunk.length;
    if (chunk.length >= minChunkBytes) {
      this.#flush();
      this.#parts.push(chunk);
      return;
    }
    if (this.#slab.length - this.#to < chunk.length) {
      this.#flush();
      this.#slab = Buffer.allocUnsafe(slabBytes);
      this.#from = this.#to = 0;
    }
    this.#to += chunk.copy(this.#slab, this.#to);
  }

  concat(take: (length: number) => Uint8Array): Uint8Array {
    this.#flush();
    const [only] = this.#parts;
    if (only !== undefined && this.#parts.length === 1) return only;
    const all = take(this.sizeBytes);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  #flush(): void {
    if (this.#to === this.#from) return;
    this.#parts.push(this.#slab.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

function clientLeft(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

function bodyTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: limit is ${maxBytes} bytes`);
}
