import { gunzipSync, inflateRawSync } from "node:zlib";
import { invalidArgument, type PushEncoding, type SkaldError, tooLarge } from "@skald/model";

/**
 * Undoes the content encoding of a push. At most `maxBytes` come out: more is refused as too_large while it
 * inflates, so that a bomb costs no more than that. Throws invalid_argument for broken or truncated input.
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
  const options = { maxOutputLength: maxBytes, chunkSize: chunkBytes(encoding, body, maxBytes) };
  try {
    return encoding === "gzip" ? gunzipSync(body, options) : inflateRawSync(body, options);
  } catch (error) {
    throw inflateError(encoding, error, maxBytes);
  }
}

const minChunkBytes = 16 * 1024;
const maxChunkBytes = 4 * 1024 * 1024;

/** One output chunk for an honest body: gzip states its length at the end, deflate is taken for ten times its size. */
function chunkBytes(encoding: PushEncoding, body: Uint8Array, maxBytes: number): number {
  const n = body.length;
  const stated =
    encoding === "gzip" && n >= 18
      ? new DataView(body.buffer, body.byteOffset + n - 4, 4).getUint32(0, true) + 1
      : n * 10;
  return Math.max(minChunkBytes, Math.min(stated, maxChunkBytes, maxBytes, n * 64));
}

function inflateError(encoding: PushEncoding, error: unknown, maxBytes: number): SkaldError {
  const code = (error as { code?: unknown }).code;
  if (code === "ERR_BUFFER_TOO_LARGE") return decodedTooLarge(maxBytes);
  if (code === "Z_BUF_ERROR") return invalidArgument("unexpected EOF", { cause: error });
  const reason = error instanceof Error ? error.message : "corrupt input";
  return invalidArgument(`${encoding}: ${reason}`, { cause: error });
}

function decodedTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: more than ${maxBytes} bytes decompressed`);
}
