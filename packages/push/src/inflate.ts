import zlib, { gunzipSync, inflateRawSync } from "node:zlib";
import { invalidArgument, type PushEncoding, SkaldError, tooLarge } from "@skald/model";
import { decodeLz4 } from "./lz4.js";

/** What a gzip body of several members may inflate to: the size at its end, of the last one, says too little of it. */
const freeBytes = 32 * 1024 * 1024;
const minChunkBytes = 16 * 1024;
const maxGuessedChunkBytes = 4 * 1024 * 1024;
const gzipFrameBytes = 18;

/**
 * Undoes the content encoding of a push. At most `maxBytes` come out: more is refused as too_large while
 * it inflates, and much earlier where it is more than the body says. Throws invalid_argument for broken or
 * truncated input.
 */
export function inflatePush(
  encoding: PushEncoding,
  body: Uint8Array,
  maxBytes: number,
): Uint8Array {
  if (encoding === "identity") {
    if (body.length > maxBytes) throw decodedTooLarge(maxBytes);
    return body;
  }
  try {
    return inflaters[encoding](body, maxBytes);
  } catch (error) {
    throw inflateError(encoding, error, maxBytes);
  }
}

/** An honest body comes out in one piece of the size that it states, so that nothing is copied. */
function gunzip(body: Uint8Array, maxBytes: number): Uint8Array {
  const stated = statedBytes(body);
  const expected = stated <= maxBytes ? stated : 0;
  return gunzipSync(body, {
    maxOutputLength: Math.min(maxBytes, Math.max(expected, freeBytes)),
    chunkSize: Math.max(minChunkBytes, expected + 1),
  });
}

function statedBytes(body: Uint8Array): number {
  const n = body.length;
  if (n < gzipFrameBytes) return 0;
  return new DataView(body.buffer, body.byteOffset + n - 4, 4).getUint32(0, true);
}

/** Raw deflate states no size and is taken for ten times its own. */
function inflateRaw(body: Uint8Array, maxBytes: number): Uint8Array {
  const guess = Math.min(body.length * 10, maxGuessedChunkBytes, maxBytes);
  return inflateRawSync(body, {
    maxOutputLength: maxBytes,
    chunkSize: Math.max(minChunkBytes, guess),
  });
}

/** What a log line is not compressed beyond. */
const maxRatio = 32;

function unzstd(body: Uint8Array, maxBytes: number): Uint8Array {
  // A named import of what Node 20 lacks would keep the program from starting there.
  if (zlib.zstdDecompressSync === undefined)
    throw invalidArgument("zstd bodies need a server on Node 22 or newer, send gzip");
  const guess = Math.min(body.length * 10, maxGuessedChunkBytes, maxBytes);
  return zlib.zstdDecompressSync(body, {
    maxOutputLength: Math.min(maxBytes, Math.max(freeBytes, maxRatio * body.length)),
    chunkSize: Math.max(minChunkBytes, guess),
  });
}

const inflaters = { gzip: gunzip, deflate: inflateRaw, zstd: unzstd, lz4: decodeLz4 } as const;

function inflateError(encoding: PushEncoding, error: unknown, maxBytes: number): SkaldError {
  if (error instanceof SkaldError) return error;
  const code = (error as { code?: unknown }).code;
  if (code === "ERR_BUFFER_TOO_LARGE") return decodedTooLarge(maxBytes);
  if (code === "Z_BUF_ERROR") return invalidArgument("unexpected EOF", { cause: error });
  const reason = error instanceof Error ? error.message : "corrupt input";
  return invalidArgument(`${encoding}: ${reason}`, { cause: error });
}

function decodedTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: more than ${maxBytes} bytes decompressed`);
}
