import type { RawPush } from "@skald/kernels";
import { detectedLevelName } from "@skald/model";

/**
 * Levels outside the table, such as `notice`, that a label or another metadata gives to rows: they are stored as metadata
 * `detected_level`, which the push did not have.
 */
export class ForeignLevels {
  readonly #push: RawPush;
  /** Value range of each row; length 0 where there is none. Made with the first one. */
  #start = none;
  #length = none;
  #rows = 0;
  #tail: Uint8Array[] | undefined;
  #tailBytes = nameBytes.length;
  #texts: Map<string, { start: number; length: number }> | undefined;

  constructor(push: RawPush) {
    this.#push = push;
  }

  get isEmpty(): boolean {
    return this.#rows === 0;
  }

  /** The row has the level that a label spells. */
  setText(row: number, text: string): void {
    const known = this.#texts?.get(text) ?? this.#append(text);
    this.#set(row, known.start, known.length);
  }

  /** The row has the level that is the value of one of its pairs. */
  setPair(row: number, pair: number): void {
    this.#set(row, this.#push.metaValueStart[pair]!, this.#push.metaValueLength[pair]!);
  }

  /** The push with these levels among its metadata: new pair columns, and the texts behind its bytes. */
  applied(): RawPush {
    const push = this.#push;
    const pairs = push.pairCount + this.#rows;
    const bytes = this.#extendedBytes();
    const columns = {
      metaStart: new Uint32Array(push.rowCount + 1),
      metaNameStart: new Uint32Array(pairs),
      metaNameLength: new Uint32Array(pairs),
      metaValueStart: new Uint32Array(pairs),
      metaValueLength: new Uint32Array(pairs),
    };
    let to = 0;
    for (let row = 0; row < push.rowCount; row++) {
      for (let pair = push.metaStart[row]!; pair < push.metaStart[row + 1]!; pair++, to++) {
        columns.metaNameStart[to] = push.metaNameStart[pair]!;
        columns.metaNameLength[to] = push.metaNameLength[pair]!;
        columns.metaValueStart[to] = push.metaValueStart[pair]!;
        columns.metaValueLength[to] = push.metaValueLength[pair]!;
      }
      if (this.#length[row]! > 0) {
        columns.metaNameStart[to] = push.bytes.length;
        columns.metaNameLength[to] = nameBytes.length;
        columns.metaValueStart[to] = this.#start[row]!;
        columns.metaValueLength[to++] = this.#length[row]!;
      }
      columns.metaStart[row + 1] = to;
    }
    return { ...push, bytes, pairCount: pairs, ...columns };
  }

  #set(row: number, start: number, length: number): void {
    if (this.#rows === 0) {
      this.#start = new Uint32Array(this.#push.rowCount);
      this.#length = new Uint32Array(this.#push.rowCount);
    }
    this.#start[row] = start;
    this.#length[row] = length;
    this.#rows++;
  }

  #append(text: string): { start: number; length: number } {
    const bytes = encoder.encode(text);
    const range = { start: this.#push.bytes.length + this.#tailBytes, length: bytes.length };
    this.#texts ??= new Map();
    this.#texts.set(text, range);
    this.#tail ??= [nameBytes];
    this.#tail.push(bytes);
    this.#tailBytes += bytes.length;
    return range;
  }

  #extendedBytes(): Uint8Array {
    const length = this.#push.bytes.length + this.#tailBytes;
    const bytes = new Uint8Array(new ArrayBuffer(length + paddingBytes), 0, length);
    bytes.set(this.#push.bytes);
    let at = this.#push.bytes.length;
    for (const part of this.#tail ?? [nameBytes]) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

const none = new Uint32Array(0);
const encoder = new TextEncoder();
const nameBytes = encoder.encode(detectedLevelName);
/** Kernels may read this far behind the last byte. */
const paddingBytes = 64;
