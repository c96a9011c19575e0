import { internal, paddingBytes } from "@skald/model";

/**
 * The decoded index of a segment in one piece of memory that threads share: what grows with the streams and runs of the
 * segment as plain columns, and the sections that it was decoded from, for the rest.
 *
 *     f64 parts | per part: f64 kind, f64 offset, f64 count | the parts, each at a multiple of 8
 */
export type IndexImage = ArrayBuffer | SharedArrayBuffer;

/** A column of an image; codes take as few bytes as the largest of them needs. */
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

const kinds = [Uint8Array, Uint16Array, Uint32Array, Float64Array] as const;
const headNumbers = 3;

/** Puts columns into one image, in their order. The last 8 bytes and more are padding. */
export function writeImage(columns: readonly Column[]): IndexImage {
  const head = new Float64Array(1 + columns.length * headNumbers);
  head[0] = columns.length;
  let end = head.byteLength;
  columns.forEach((column, part) => {
    head.set([kindOf(column), end, column.length], 1 + part * headNumbers);
    end += Math.ceil((column.byteLength + paddingBytes) / 8) * 8;
  });
  const image = new SharedArrayBuffer(end);
  new Float64Array(image, 0, head.length).set(head);
  columns.forEach((column, part) => {
    const at = head[1 + part * headNumbers + 1]!;
    const bytes = new Uint8Array(column.buffer, column.byteOffset, column.byteLength);
    new Uint8Array(image, at, bytes.length).set(bytes);
  });
  return image;
}

/** Looks at the columns of an image. */
export class ImageReader {
  readonly #image: IndexImage;
  readonly #head: Float64Array;

  constructor(image: IndexImage) {
    this.#image = image;
    const [parts = 0] = new Float64Array(image, 0, 1);
    this.#head = new Float64Array(image, 8, parts * headNumbers);
  }

  column(part: number): Column {
    const kind = kinds[this.#head[part * headNumbers] ?? kinds.length];
    if (kind === undefined) throw internal(`index has no part ${part}`);
    return new kind(
      this.#image as ArrayBuffer,
      this.#head[part * headNumbers + 1]!,
      this.#head[part * headNumbers + 2]!,
    );
  }

  bytes(part: number): Uint8Array {
    return this.column(part) as Uint8Array;
  }

  words(part: number): Uint32Array {
    return this.column(part) as Uint32Array;
  }

  numbers(part: number): Float64Array {
    return this.column(part) as Float64Array;
  }
}

function kindOf(column: Column): number {
  return kinds.findIndex((kind) => column instanceof kind);
}
