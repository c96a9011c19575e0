import type { RawPushLimits, TakeBytes } from "@skald/kernels";
import { invalidArgument } from "@skald/model";
import { type BodyEncoding, inflate, pushLimits } from "./decode.js";
import { decodeDatadog } from "./doors/datadog.js";
import type { DoorPush, DoorRowsOptions, PieceOfBody } from "./doors/door-rows.js";
import { type BulkPush, decodeBulk, decodeDocument } from "./doors/elasticsearch.js";
import { decodeJournal } from "./doors/journald.js";
import { decodeJsonLines, decodeTextLines } from "./doors/json-lines.js";
import type { FieldMapping } from "./doors/mapping.js";
import { decodeHecEvents } from "./doors/splunk.js";

/** The formats of agents that speak neither Loki's push nor OTLP. */
export type DoorFormat = keyof typeof decoders;

/** A body in one of these formats, or a piece of it; survives a structured clone, so that a worker can decode it. */
export interface DoorBody {
  readonly format: DoorFormat;
  readonly encoding: BodyEncoding;
  readonly body: Uint8Array;
  readonly mapping: FieldMapping;
  /** Given for a piece of a body, which formats of independent records have. */
  readonly piece?: PieceOfBody;
}

type Decoder = (options: DoorRowsOptions, piece?: PieceOfBody) => DoorPush | BulkPush;

const decoders = {
  json_lines: decodeJsonLines,
  text_lines: decodeTextLines,
  journal: decodeJournal,
  bulk: decodeBulk,
  document: decodeDocument,
  hec: decodeHecEvents,
  datadog: decodeDatadog,
} satisfies Record<string, Decoder>;

/**
 * Decodes a body of records into columns, as `decodeBody` does a push: at most `limitBytes` in memory, which may come from
 * `take`. Throws invalid_argument for a body that is not of its format, and too_large beyond a limit.
 */
export function decodeDoor(
  input: DoorBody,
  limitBytes: number,
  take?: TakeBytes,
): DoorPush | BulkPush {
  const limits: RawPushLimits = pushLimits(limitBytes);
  const body = inflate(input, limits.maxDecodedBytes);
  const decode: Decoder = decoders[input.format];
  return decode({ body, mapping: input.mapping, limits, take }, input.piece);
}

/** The encoding of a body from its header; throws invalid_argument for an unknown one. */
export function parseDoorEncoding(header = ""): BodyEncoding {
  const name = header.trim().toLowerCase();
  if (name === "" || name === "identity") return "identity";
  if (name === "gzip" || name === "zstd") return name;
  if (name === "deflate") return "zlib";
  throw invalidArgument(
    `Content-Encoding "${header.slice(0, 64)}" not supported: send gzip, deflate or zstd`,
  );
}
