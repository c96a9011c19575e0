import type { RawPush } from "@skald/kernels";
import type { PushFormat } from "@skald/model";
import { type ByteCache, parsePushLabels } from "@skald/push";
import type { PushStream, StreamRules } from "./stream-rules.js";

/** Streams between two points where other work may go first. */
const streamsPerStep = 64;

/**
 * The streams of a push: a known label text costs one look-up in the cache, a new one is parsed and put to the rules.
 * Throws invalid_argument when one does not parse, which refuses the whole push; yields where it may be interrupted.
 */
export function* resolveStreams(
  push: RawPush,
  format: PushFormat,
  rules: StreamRules,
  cache: ByteCache<PushStream>,
): Generator<void, readonly PushStream[]> {
  const streams: PushStream[] = [];
  const { bytes, streamLabelStart, streamLabelLength } = push;
  for (let ordinal = 0; ordinal < push.streamCount; ordinal++) {
    const start = streamLabelStart[ordinal]!;
    const length = streamLabelLength[ordinal]!;
    const own = push.streamServiceKnown?.[ordinal] === 1 ? rules.undiscovered : rules;
    let stream = cache.get(own, bytes, start, length);
    if (stream === undefined) {
      stream = own.apply(parsePushLabels(format, bytes, start, length));
      cache.set(own, bytes, start, length, stream);
    }
    streams.push(stream);
    if (ordinal % streamsPerStep === streamsPerStep - 1) yield;
  }
  return streams;
}
