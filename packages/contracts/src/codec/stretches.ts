import { decodeSnappy } from "@skald/kernels";
import type { Batch, BatchSource } from "@skald/model";
import { PushMemory } from "@skald/push";

/** A raw snappy block of literals begins with its decoded length, at most 5 bytes, a tag, and the length of the literal. */
const maxHeadBytes = 10;
const literalTag = 63 << 2;
/** Tags of fields 1 and 2 as length-delimited ones: a stream in the body; labels and an entry in a stream. */
const firstTag = 0x0a;
const entryTag = 0x12;

/** Some streams of a body as a body of their own. */
export interface BodyStretches {
  /** One behind the other they are a raw snappy block that compresses nothing. To be copied before another batch is cut. */
  readonly pieces: readonly Uint8Array[];
  /** The place of each stream in that body. */
  readonly ordinals: Uint32Array;
  /** Row ordinals of that body that are not in the batch, ascending. */
  readonly dropped: Uint32Array;
}

/**
 * Cuts streams, given by index, ascending, out of the protobuf body of a batch. In a decoded body each stream is a stretch, so
 * that nothing is encoded again. Undefined where a body has more than what agents send.
 */
export function cutStreams(batch: Batch, indexes: Uint32Array): BodyStretches | undefined {
  const source = batch.source!;
  const body = bodyOf(source);
  if (body === undefined) return undefined;
  const { bytes, starts, rowStarts } = body;
  const pieces: Uint8Array[] = [];
  const dropped = new DroppedRows(source.dropped);
  let length = 0;
  let from = 0;
  let to = 0;
  for (const index of indexes) {
    const { ordinal } = batch.streams[index]!;
    dropped.take(rowStarts[ordinal]!, rowStarts[ordinal + 1]!);
    const start = starts[ordinal]!;
    // Neighbours are one stretch.
    if (start !== to) {
      if (to > from) pieces.push(bytes.subarray(from, to));
      from = start;
    }
    to = starts[ordinal + 1]!;
    length += to - start;
  }
  if (to > from) pieces.push(bytes.subarray(from, to));
  return {
    pieces: [blockHead(length), ...pieces],
    ordinals: indexes.map((_, i) => i),
    dropped: dropped.taken(),
  };
}

/** Renumbers dropped rows for a body that has some of the streams. */
class DroppedRows {
  readonly #all: Uint32Array;
  readonly #taken: number[] = [];
  #at = 0;
  #rows = 0;

  constructor(all: Uint32Array) {
    this.#all = all;
  }

  /** Rows `from .. to` of the whole body follow. */
  take(from: number, to: number): void {
    while (this.#at < this.#all.length && this.#all[this.#at]! < from) this.#at++;
    for (; this.#at < this.#all.length && this.#all[this.#at]! < to; this.#at++)
      this.#taken.push(this.#all[this.#at]! - from + this.#rows);
    this.#rows += to - from;
  }

  taken(): Uint32Array {
    return Uint32Array.from(this.#taken);
  }
}

/** What stands before the bytes of the only literal of a block. */
function blockHead(length: number): Uint8Array {
  const head = new Uint8Array(maxHeadBytes);
  let at = 0;
  let rest = length;
  for (; rest > 0x7f; rest >>>= 7) head[at++] = (rest & 0x7f) | 0x80;
  head[at++] = rest;
  if (length === 0) return head.subarray(0, at);
  head[at++] = literalTag;
  for (let shift = 0; shift < 32; shift += 8) head[at++] = ((length - 1) >>> shift) & 0xff;
  return head.subarray(0, at);
}

/** A decoded body; stream i is the bytes `starts[i] .. starts[i+1]` and has the rows `rowStarts[i] .. rowStarts[i+1]`. */
interface DecodedBody {
  readonly bytes: Uint8Array;
  readonly starts: readonly number[];
  readonly rowStarts: readonly number[];
}

/** The body that was cut last: the parts of a push are made one behind the other. */
let last: { readonly source: BatchSource; readonly body: DecodedBody | undefined } | undefined;
const memory = new PushMemory();

function bodyOf(source: BatchSource): DecodedBody | undefined {
  if (last?.source === source) return last.body;
  memory.reset();
  const bytes = decodeSnappy(source.body, maxBytes, (length) => memory.take(length));
  last = { source, body: new BodyScan(bytes).run() };
  return last.body;
}

/** The body was decoded before, within the limits of pushes. */
const maxBytes = 2 ** 32 - 1;

/** Finds the streams of a body and counts their rows. */
class BodyScan {
  readonly #bytes: Uint8Array;
  #at = 0;
  #rows = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  run(): DecodedBody | undefined {
    const bytes = this.#bytes;
    const starts = [0];
    const rowStarts = [0];
    while (this.#at < bytes.length) {
      if (bytes[this.#at++] !== firstTag) return undefined;
      const length = this.#varint();
      if (!this.#passStream(this.#at + length)) return undefined;
      starts.push(this.#at);
      rowStarts.push(this.#rows);
    }
    return { bytes, starts, rowStarts };
  }

  #passStream(end: number): boolean {
    while (this.#at < end) {
      const tag = this.#bytes[this.#at++];
      if (tag !== entryTag && tag !== firstTag) return false;
      if (tag === entryTag) this.#rows++;
      const length = this.#varint();
      this.#at += length;
    }
    return this.#at === end;
  }

  #varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }
}
