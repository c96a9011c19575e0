import type { IncomingMessage } from "node:http";
import { SkaldError, tooLarge } from "@skald/model";

/**
 * Reads a request body of at most `maxBytes`. A declared length beyond that is refused before a byte is read,
 * an undeclared one as soon as it passes the limit; the text names the limit. Rejects with `cancelled` when the
 * client leaves midway.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) return Promise.reject(bodyTooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) {
        request.removeAllListeners("data");
        request.resume();
        reject(bodyTooLarge(maxBytes));
        return;
      }
      chunks.push(chunk);
    });
    request.once("end", () =>
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)),
    );
    request.once("error", reject);
    request.once("close", () => {
      if (!request.complete)
        reject(new SkaldError("cancelled", "the request was cancelled by the client"));
    });
  });
}

function bodyTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: limit is ${maxBytes} bytes`);
}
