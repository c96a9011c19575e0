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
  tooLarge,
} from "@skald/model";
import { inflatePush } from "./inflate.js";
import { decodeOtlp } from "./otlp/decode-otlp.js";
import { decodeOtlpJson } from "./otlp/json.js";

/** A push body as it came over the wire; survives a structured clone, so that a worker can decode it. */
export interface PushBody {
  readonly format: PushFormat;
  readonly encoding: PushEncoding;
  readonly body: Uint8Array;
  /** Of the OTLP forms: what it is read with. */
  readonly otlp?: OtlpReading;
}

/** Each thread holds a decoded body in memory as a whole, so no setting goes beyond. */
export const maxDecodedBytes = 128 * 1024 * 1024;

/** One push holds at most this many streams, rows and metadata pairs: agents send a thousandth of it. */
const maxStreams = 128 * 1024;
const maxRows = 4 * 1024 * 1024;
const maxPairs = 8 * 1024 * 1024;

/**
 * Decodes a push body into columns: content encoding, then snappy and protobuf, JSON, or OTLP. `limitBytes`, at most
 * `maxDecodedBytes`, bounds what it may become in memory. Throws invalid_argument (400) for malformed input and too_large (413) beyond a limit.
 * What is decoded may lie in memory from `take`.
 */
export function decodePush(
  input: PushBody,
  limitBytes: number = maxDecodedBytes,
  take?: TakeBytes,
): RawPush {
  const limits: RawPushLimits = {
    maxDecodedBytes: Math.min(limitBytes, maxDecodedBytes),
    maxStreams,
    maxRows,
    maxPairs,
  };
  const body = inflatePush(input.encoding, input.body, limits.maxDecodedBytes);
  try {
    return scannerOf(input)(body, limits, take);
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    if (error.code === "too_large") throw tooLarge(error.message);
    throw invalidArgument(error.message, { cause: error });
  }
}

type Scanner = (body: Uint8Array, limits: RawPushLimits, take?: TakeBytes) => RawPush;

function scannerOf({ format, otlp }: PushBody): Scanner {
  if (format === "otlp_protobuf" || format === "otlp_json") {
    if (otlp === undefined) throw internal("OTLP body without what it is read with");
    const decode = format === "otlp_json" ? decodeOtlpJson : decodeOtlp;
    return (body, limits, take) => decode(body, otlp, limits, take);
  }
  if (format === "protobuf") return decodeSnappyProtobufPush;
  return format === "json" ? scanJsonPush : scanLegacyJsonPush;
}
