import { type BytesColumn, paddingBytes } from "@skald/model";
import {
  damaged,
  f64s,
  field,
  type MessageCodec,
  mapped,
  message,
  rawBytes,
  u32s,
} from "@skald/transport/protobuf";

/** Whether each number is at least the one before it. */
export function ascends(numbers: Uint32Array, isStrict = false): boolean {
  const least = isStrict ? 1 : 0;
  for (let i = 1; i < numbers.length; i++) {
    if (numbers[i]! - numbers[i - 1]! < least) return false;
  }
  return true;
}

/** Whether each number is below a bound. */
export function areBelow(numbers: Uint32Array, bound: number): boolean {
  for (let i = 0; i < numbers.length; i++) if (numbers[i]! >= bound) return false;
  return true;
}

interface Bytes {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
}

/** A column of byte strings; what is behind the last one stays behind. */
export const bytesColumn: MessageCodec<BytesColumn> = mapped(
  message<Bytes>({ bytes: field(1, rawBytes), offsets: field(2, u32s) }),
  ({ bytes, offsets }) => ({ bytes: bytes.subarray(0, offsets[offsets.length - 1] ?? 0), offsets }),
  ({ bytes, offsets }) => {
    if ((offsets[0] ?? 0) !== 0 || (offsets[offsets.length - 1] ?? 0) !== bytes.length)
      throw damaged("the offsets of a column are not those of its bytes");
    if (!ascends(offsets)) throw damaged("the offsets of a column do not ascend");
    return { bytes: withPadding(bytes), offsets };
  },
);

/** The bytes as they are when enough of the message is behind them, else a copy with padding. */
export function withPadding(bytes: Uint8Array): Uint8Array {
  const { buffer, byteOffset, length } = bytes;
  if (byteOffset + length + paddingBytes <= buffer.byteLength) return bytes;
  const padded = new Uint8Array(length + paddingBytes);
  padded.set(bytes);
  return padded.subarray(0, length);
}

interface TextList {
  /** All texts as UTF-8, one behind the other, and where each ends. */
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

/** A long list of texts: one stretch of bytes, because one long text is read at once. */
export const textList: MessageCodec<readonly string[]> = mapped(
  message<TextList>({ bytes: field(1, rawBytes), ends: field(2, u32s) }),
  listOfTexts,
  textsOfList,
);

function listOfTexts(texts: readonly string[]): TextList {
  const joined = texts.join("");
  const bytes = Buffer.from(joined);
  // In a text of ASCII letters are bytes.
  const lengthOf =
    bytes.length === joined.length
      ? (text: string) => text.length
      : (text: string) => Buffer.byteLength(text);
  let end = 0;
  return { bytes, ends: Uint32Array.from(texts, (text) => (end += lengthOf(text))) };
}

function textsOfList({ bytes, ends }: TextList): string[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!ascends(ends) || (ends[ends.length - 1] ?? 0) !== all.length)
    throw damaged("the ends of texts are not those of their bytes");
  const joined = all.toString("utf8");
  const cut =
    joined.length === all.length
      ? (from: number, to: number) => joined.slice(from, to)
      : (from: number, to: number) => all.toString("utf8", from, to);
  const texts = new Array<string>(ends.length);
  for (let i = 0; i < ends.length; i++) texts[i] = cut(ends[i - 1] ?? 0, ends[i]!);
  return texts;
}

/** Lists of numbers, one behind the other, and where each ends. */
interface Lists<Numbers> {
  readonly ends: Uint32Array;
  readonly numbers: Numbers;
}

type NumberArray = Uint32Array | Float64Array;

/** Lists of numbers. */
export const u32Lists: MessageCodec<readonly Uint32Array[]> = listsOf(
  message<Lists<Uint32Array>>({ ends: field(1, u32s), numbers: field(2, u32s) }),
  (length) => new Uint32Array(length),
);

/** The same for doubles. */
export const f64Lists: MessageCodec<readonly Float64Array[]> = listsOf(
  message<Lists<Float64Array>>({ ends: field(1, u32s), numbers: field(2, f64s) }),
  (length) => new Float64Array(length),
);

function listsOf<Numbers extends NumberArray>(
  codec: MessageCodec<Lists<Numbers>>,
  make: (length: number) => Numbers,
): MessageCodec<readonly Numbers[]> {
  return mapped<readonly Numbers[], Lists<Numbers>>(
    codec,
    (lists) => {
      let end = 0;
      const ends = Uint32Array.from(lists, ({ length }) => (end += length));
      const numbers = make(end);
      for (const [i, list] of lists.entries()) numbers.set(list, ends[i - 1] ?? 0);
      return { ends, numbers };
    },
    ({ ends, numbers }) => {
      if (!ascends(ends) || (ends[ends.length - 1] ?? 0) !== numbers.length)
        throw damaged("the ends of lists are not those of their numbers");
      return Array.from(ends, (end, i) => numbers.subarray(ends[i - 1] ?? 0, end) as Numbers);
    },
  );
}
