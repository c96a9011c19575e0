import type { TakeBytes } from "@skald/kernels";
import { type BatchSource, errorCodeOf, type Labels } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import type { Parts } from "@skald/transport/grpc";
import {
  damaged,
  decodeMessage,
  encodeMessage,
  field,
  type MessageCodec,
  message,
  rawBytes,
  text,
  u8s,
  u32s,
} from "@skald/transport/protobuf";
import type { PushRequest } from "../ingester.js";
import { textList } from "./columns/columns.js";
import { labelSets } from "./columns/labels.js";
import { areLevels, prefixOf, source } from "./push.js";

/** A batch as the body that it came as and what was decided about that: who gets it decodes it again. */
interface WireBody {
  readonly tenant: string;
  readonly labels: readonly Labels[];
  readonly texts: readonly string[];
  readonly ordinals: Uint32Array;
  readonly levels: Uint8Array;
  readonly source: Omit<BatchSource, "body">;
  readonly body: Uint8Array;
}

const bodyField = 7;

const wireBody: MessageCodec<WireBody> = message<WireBody>({
  tenant: field(1, text),
  labels: field(2, labelSets),
  texts: field(3, textList),
  ordinals: field(4, u32s),
  levels: field(5, u8s),
  source: field(6, source),
  body: field(bodyField, rawBytes),
});

const none = new Uint8Array(0);
const bytesPerStream = 256;
/** Decoding more would hold up who gets it: some 6 ms. */
const maxDecodedBytes = 4 * 1024 * 1024;

/**
 * A push as its body, a third of its columns; undefined where there is none that is decoded in less time than its columns are
 * carried in.
 */
export function encodePushBody({ tenant, batch }: PushRequest): Parts | undefined {
  const { source: origin, streams, levels } = batch;
  if (origin?.format !== "protobuf" || origin.encoding !== "identity") return undefined;
  if (batch.bytes.length > maxDecodedBytes) return undefined;
  const head = encodeMessage<WireBody>(
    wireBody,
    {
      tenant,
      labels: streams.map(({ labels }) => labels),
      texts: streams.map(({ text: own }) => own),
      ordinals: Uint32Array.from(streams, ({ ordinal }) => ordinal),
      levels: levels.subarray(0, batch.rowCount),
      source: origin,
      body: none,
    },
    batch.rowCount + streams.length * bytesPerStream,
  );
  return [head, prefixOf(bodyField, origin.body), origin.body];
}

/**
 * Decodes a push and its body, into memory from `take`. Throws invalid_argument when the bytes are no push, or what was decided
 * does not fit the body.
 */
export function decodePushBody(encoded: Uint8Array, take?: TakeBytes): PushRequest {
  const wire = decodeMessage(wireBody, encoded);
  const { tenant, labels, texts, ordinals, levels, source: origin, body } = wire;
  if (texts.length !== labels.length || ordinals.length !== labels.length)
    throw damaged("streams are not complete");
  if (!areLevels(levels)) throw damaged("a level is unknown");
  const streams = labels.map((own, i) => ({
    labels: own,
    text: texts[i] as string,
    ordinal: ordinals[i] as number,
  }));
  const received = { ...origin, body };
  const { dropped } = origin;
  try {
    const raw = decodeBody(received, undefined, take);
    return { tenant, batch: assembleBatch(raw, { streams, dropped, levels, source: received }) };
  } catch (error) {
    const code = errorCodeOf(error);
    if (code !== "internal" && code !== "too_large") throw error;
    throw damaged((error as Error).message);
  }
}
