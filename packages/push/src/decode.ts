import zlib, { gunzipSync, inflateRawSync, inflateSync } from "node:zlib";
import {
  decodeSnappyProtobufPush,
  KernelError,
  type RawPush,
  type RawPushLimits,
  scanJsonPush,
  scanLegacyJsonPush,
  type TakeBytes,
} from "@skald/kernels";
import {
  internal,
  invalidArgument,
  type OtlpReading,
  type PushEncoding,
  type PushFormat,
  SkaldError,
  tooLarge,
} from "@skald/model";
import { decodeLz4 } from "./lz4.js";
import { decodeOtlp } from "./otlp/decode-otlp.js";
import { decodeOtlpJson } from "./otlp/json.js";

/** A push body as a client sent it; survives a structured clone, so that a worker can decode it. */
export interface PushBody {
  readonly format: PushFormat;
  readonly encoding: PushEncoding;
  readonly body: Uint8Array;
  /** How attributes are read; given for the OTLP formats. */
  readonly otlp?: OtlpReading;
}

/** Each thread holds a decoded body in memory as a whole, so no setting goes beyond this size. */
export const maxDecodedBytes = 128 * 1024 * 1024;

/** One push has at most this many streams, rows and metadata pairs; agents send a thousandth of it. */
const maxStreams = 128 * 1024;
const maxRows = 4 * 1024 * 1024;
const maxPairs = 8 * 1024 * 1024;

/**
 * Decodes a push body into columns: first its content encoding, then snappy and protobuf, JSON, or OTLP. The result takes
 * at most `limitBytes` in memory, which may come from `take`. Throws invalid_argument (400) for malformed input and
 * too_large (413) beyond a limit.
 */
export function decodeBody(
  input: PushBody,
  limitBytes: number = maxDecodedBytes,
  take?: TakeBytes,
): RawPush {
  const limits = pushLimits(limitBytes);
  const { format, otlp } = input;
  const body = inflate(input, limits.maxDecodedBytes);
  try {
    if (format === "protobuf") return decodeSnappyProtobufPush(body, limits, take);
    if (format === "json") return scanJsonPush(body, limits, take);
    if (format === "legacy_json") return scanLegacyJsonPush(body, limits);
    if (otlp === undefined) throw internal("OTLP body without what it is read with");
    const decode = format === "otlp_json" ? decodeOtlpJson : decodeOtlp;
    return decode(body, otlp, limits, take);
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    if (error.code === "too_large") throw tooLarge(error.message);
    throw invalidArgument(error.message, { cause: error });
  }
}

/** The bounds of one push of at most `limitBytes` in memory. */
export function pushLimits(limitBytes: number): RawPushLimits {
  return {
    maxDecodedBytes: Math.min(limitBytes, maxDecodedBytes),
    maxStreams,
    maxRows,
    maxPairs,
  };
}

/** `deflate` of pushes is the bare format; other agents mean what HTTP does: `zlib`, or the bare format. */
export type BodyEncoding = PushEncoding | "zlib";

/** A body of any size may inflate to this size. */
const freeBytes = 32 * 1024 * 1024;
const minChunkBytes = 16 * 1024;
const maxGuessedChunkBytes = 4 * 1024 * 1024;
const gzipFrameBytes = 18;
/** A body may inflate to this many times its size: log lines do not compress better, and a bomb does. */
const maxRatio = 32;

/** Undoes the content encoding of a push; throws too_large as soon as more than `limitBytes`, or too many times its size, come out. */
export function inflate(
  { encoding, body }: { readonly encoding: BodyEncoding; readonly body: Uint8Array },
  limitBytes: number,
): Uint8Array {
  if (encoding === "identity") {
    if (body.length > limitBytes) throw decodedTooLarge(limitBytes);
    return body;
  }
  const ratioBytes = Math.max(freeBytes, maxRatio * body.length);
  const maxBytes = Math.min(limitBytes, ratioBytes);
  try {
    return inflaters[encoding](body, maxBytes);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ERR_BUFFER_TOO_LARGE" || code === "too_large") {
      throw maxBytes < limitBytes ? inflatesTooMuch(encoding, maxBytes) : decodedTooLarge(maxBytes);
    }
    if (error instanceof SkaldError) throw error;
    if (code === "Z_BUF_ERROR") throw invalidArgument("unexpected EOF", { cause: error });
    const reason = error instanceof Error ? error.message : "corrupt input";
    throw invalidArgument(`${encoding}: ${reason}`, { cause: error });
  }
}

const inflaters = {
  gzip: gunzip,
  deflate: inflateRaw,
  zlib: inflateZlib,
  zstd: unzstd,
  lz4: decodeLz4,
} as const;

/** The body states its size at its end, so an honest one comes out in one piece and nothing is copied. */
function gunzip(body: Uint8Array, maxBytes: number): Uint8Array {
  const n = body.length;
  const stated =
    n < gzipFrameBytes
      ? 0
      : new DataView(body.buffer, body.byteOffset + n - 4, 4).getUint32(0, true);
  const chunkSize =
    stated <= maxBytes ? Math.max(minChunkBytes, stated + 1) : guessedChunkBytes(body, maxBytes);
  return gunzipSync(body, { maxOutputLength: maxBytes, chunkSize });
}

function inflateRaw(body: Uint8Array, maxBytes: number): Uint8Array {
  const chunkSize = guessedChunkBytes(body, maxBytes);
  return inflateRawSync(body, { maxOutputLength: maxBytes, chunkSize });
}

/** Many clients leave the header of zlib out. */
function inflateZlib(body: Uint8Array, maxBytes: number): Uint8Array {
  const [first = 0, second = 0] = body;
  const hasHeader = (first & 15) === 8 && ((first << 8) | second) % 31 === 0;
  if (!hasHeader) return inflateRaw(body, maxBytes);
  const chunkSize = guessedChunkBytes(body, maxBytes);
  return inflateSync(body, { maxOutputLength: maxBytes, chunkSize });
}

function unzstd(body: Uint8Array, maxBytes: number): Uint8Array {
  // Node 20 lacks it, and a named import would keep the program from starting there.
  if (zlib.zstdDecompressSync === undefined)
    throw invalidArgument("zstd bodies need a server on Node 22 or newer, send gzip");
  return zlib.zstdDecompressSync(body, {
    maxOutputLength: maxBytes,
    chunkSize: guessedChunkBytes(body, maxBytes),
  });
}

/** Raw deflate and zstd state no size that can be relied on, so ten times that of the body is assumed. */
function guessedChunkBytes(body: Uint8Array, maxBytes: number): number {
  return Math.max(minChunkBytes, Math.min(body.length * 10, maxGuessedChunkBytes, maxBytes));
}

function inflatesTooMuch(encoding: BodyEncoding, maxBytes: number): SkaldError {
  return tooLarge(
    `request body too large: its ${encoding} inflates to more than ${maxBytes} bytes; beyond ${freeBytes} bytes at most ${maxRatio} times the size of the body is accepted, send less in one push`,
  );
}

function decodedTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: more than ${maxBytes} bytes decompressed`);
}

/** The family of a path: `/loki/api/v1/push`, `/api/prom/push` with another JSON form, or `/otlp/v1/logs`. */
export type PushStyle = "v1" | "legacy" | "otlp";

interface PushHeaders {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly style: PushStyle;
}

/**
 * Finds the format of a push body from its headers: JSON for `application/json`, snappy protobuf for any other media type;
 * OTLP allows no other type, and no parameters. Throws invalid_argument for a missing or malformed type and for an
 * unknown encoding.
 */
export function parsePushHeaders(headers: PushHeaders): Pick<PushBody, "format" | "encoding"> {
  const { contentType = "", contentEncoding = "", style } = headers;
  if (style === "otlp") return parseOtlpHeaders(contentType, contentEncoding);
  const type = commonTypes.has(contentType) ? contentType : parseMediaType(contentType);
  const jsonFormat = style === "v1" ? "json" : "legacy_json";
  return {
    format: type === "application/json" ? jsonFormat : "protobuf",
    encoding: parseEncoding(contentEncoding),
  };
}

/** Agents send these, and they need no parsing. */
const commonTypes: ReadonlySet<string> = new Set(["application/x-protobuf", "application/json"]);

/** `snappy` says nothing new: protobuf bodies are raw snappy anyway, and JSON is never snappy. */
function parseEncoding(text: string): PushEncoding {
  if (text === "" || text === "snappy") return "identity";
  if (text === "gzip" || text === "deflate") return text;
  throw invalidArgument(`Content-Encoding "${text.slice(0, 64)}" not supported`);
}

function parseOtlpHeaders(
  contentType: string,
  encoding: string,
): Pick<PushBody, "format" | "encoding"> {
  const format = otlpFormats.get(contentType);
  if (format === undefined) {
    throw invalidArgument(
      `content type: ${contentType.slice(0, 64)} is not supported; use application/x-protobuf or application/json`,
    );
  }
  if (encoding === "") return { format, encoding: "identity" };
  if (encoding === "gzip" || encoding === "zstd" || encoding === "lz4") return { format, encoding };
  throw invalidArgument(
    `unsupported content encoding ${encoding.slice(0, 64)}: only gzip, lz4 and zstd are supported`,
  );
}

const otlpFormats: ReadonlyMap<string, PushFormat> = new Map([
  ["application/x-protobuf", "otlp_protobuf"],
  ["application/json", "otlp_json"],
]);

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const mediaType = new RegExp(`^\\s*(${token})(/(${token})?)?\\s*`);
const parameter = new RegExp(`^;\\s*(${token})\\s*=\\s*(?:${token}|"(?:[^"\\\\]|\\\\.)*")\\s*`);

/** The media type in lower case. Its parameters are checked; one semicolon may trail. */
function parseMediaType(header: string): string {
  const m = mediaType.exec(header);
  if (m === null) throw invalidArgument("mime: no media type");
  if (m[2] !== undefined && m[3] === undefined) {
    throw invalidArgument("mime: expected token after slash");
  }
  let rest = header.slice(m[0].length);
  if (rest !== "" && !rest.startsWith(";")) {
    throw invalidArgument("mime: unexpected content after media subtype");
  }
  const names = new Set<string>();
  while (rest !== "" && rest.trim() !== ";") {
    const p = parameter.exec(rest);
    if (p === null) throw invalidArgument("mime: invalid media parameter");
    const name = (p[1] as string).toLowerCase();
    if (names.has(name)) throw invalidArgument("mime: duplicate parameter name");
    names.add(name);
    rest = rest.slice(p[0].length);
  }
  return m[0].trim().toLowerCase();
}
