import type { RawPush } from "@skald/kernels";
import { type Batch, paddingBytes } from "@skald/model";

const utf8 = new TextEncoder();

/**
 * A batch in the form that a decoded push of label texts has, so that rows that never were a body go the same way as those
 * that were. Label texts and metadata names are put behind a copy of its bytes; columns that validation may change are copied too.
 * Streams must hold all rows in order, without gaps.
 */
export function rawOfBatch(batch: Batch): RawPush {
  const { streams, rowCount, metaNames, metaName } = batch;
  const texts = [...streams.map(({ text }) => text), ...metaNames].map((text) => utf8.encode(text));
  const starts = new Uint32Array(texts.length);
  const lengths = Uint32Array.from(texts, (text) => text.length);
  let end = batch.bytes.length;
  for (const [i, text] of texts.entries()) {
    starts[i] = end;
    end += text.length;
  }
  const bytes = new Uint8Array(end + paddingBytes);
  bytes.set(batch.bytes);
  for (const [i, text] of texts.entries()) bytes.set(text, starts[i]);
  const nameStarts = starts.subarray(streams.length);
  const nameLengths = lengths.subarray(streams.length);
  return {
    bytes: bytes.subarray(0, end),
    streamCount: streams.length,
    rowCount,
    pairCount: metaName.length,
    streamLabelStart: starts.subarray(0, streams.length),
    streamLabelLength: lengths.subarray(0, streams.length),
    streamRowStart: Uint32Array.from([...streams.map(({ rowStart }) => rowStart), rowCount]),
    seconds: batch.seconds.slice(),
    nanos: batch.nanos.slice(),
    lineStart: batch.lineStart,
    lineLength: batch.lineLength.slice(),
    metaStart: batch.metaStart,
    metaNameStart: metaName.map((name) => nameStarts[name]!),
    metaNameLength: metaName.map((name) => nameLengths[name]!),
    metaValueStart: batch.metaValueStart,
    metaValueLength: batch.metaValueLength,
  };
}
