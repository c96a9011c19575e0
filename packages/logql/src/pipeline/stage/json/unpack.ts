import { Arena, bytesEqual, encodeText, hasByte } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { KeyTree, keyWants } from "../fields/key-tree.js";
import type { PreparedStage, RowState, StageContext } from "../row-state.js";
import { JsonReader, jsonClosed, jsonFault, jsonFaultText, jsonValue } from "./reader.js";
import { decodeJsonString, emptyText, type TextRange, unescapeInto } from "./string.js";

const entryKey = encodeText("_entry");

/** `| unpack`: undoes the packing of an agent: the labels come back and the line is the member `_entry`. */
export const prepareUnpack: PreparedStage = (row, context) => {
  const unpacker = new Unpacker(row, context);
  return () => unpacker.run();
};

class Unpacker {
  readonly #row: RowState;
  readonly #keys: KeyTree;
  readonly #reader = new JsonReader();
  /** Of each string member the bounds of its key and of its text, with their escapes. */
  readonly #bounds: number[] = [];
  /** Keys without escapes. */
  readonly #arena = new Arena();
  readonly #key = emptyText();
  readonly #text = emptyText();

  constructor(row: RowState, { demand }: StageContext) {
    this.#row = row;
    this.#keys = new KeyTree(row.labels.names, demand);
  }

  run(): boolean {
    const { labels, line } = this.#row;
    const { bytes, start, end } = line;
    if (start === end) return true;
    if (bytes[start] !== 123) {
      labels.fail(stageErrors.json, "expecting json object(6), but it is not");
      return true;
    }
    const fault = this.#readMembers(bytes, start, end);
    if (fault !== jsonFault.none) {
      labels.fail(stageErrors.json, jsonFaultText[fault]!);
      return true;
    }
    const entry = this.#findEntry(bytes);
    if (entry < 0) return true;
    this.#keys.beginLine();
    for (let i = 0; i < this.#bounds.length; i += 4) this.#extract(bytes, i);
    const text = this.#decoded(bytes, entry);
    line.replace(text.bytes, text.start, text.end);
    return true;
  }

  /** Nothing counts of a line that is malformed anywhere. */
  #readMembers(bytes: Uint8Array, start: number, end: number): number {
    const reader = this.#reader;
    this.#bounds.length = 0;
    let code = reader.open(bytes, start, end);
    while (code === jsonFault.none) {
      code = reader.nextKey();
      if (code !== jsonFault.none && code !== jsonFault.colon) break;
      const { keyStart, keyEnd, keyEscaped } = reader;
      if (keyEscaped && !this.#readKey(bytes, keyStart, keyEnd)) return jsonFault.escape;
      if (code === jsonFault.none) code = reader.readValue();
      if (code !== jsonFault.none || reader.kind !== jsonValue.string) continue;
      this.#bounds.push(keyStart, keyEnd, reader.valueStart, reader.valueEnd);
    }
    return code === jsonClosed ? jsonFault.none : code;
  }

  /** Makes `#key` the key in the range without its escapes; false when one is wrong. */
  #readKey(bytes: Uint8Array, from: number, to: number): boolean {
    const key = this.#key;
    key.bytes = bytes;
    key.start = from;
    key.end = to;
    if (!hasByte(bytes, from, to, 92)) return true;
    this.#arena.used = 0;
    key.start = unescapeInto(this.#arena, bytes, from, to);
    key.bytes = this.#arena.bytes;
    key.end = this.#arena.used;
    return key.start >= 0;
  }

  #isEntry(bytes: Uint8Array, i: number): boolean {
    this.#readKey(bytes, this.#bounds[i]!, this.#bounds[i + 1]!);
    return bytesEqual(this.#key.bytes, this.#key.start, this.#key.end, entryKey);
  }

  /** Place of the last string member `_entry`, or -1. */
  #findEntry(bytes: Uint8Array): number {
    let i = this.#bounds.length - 4;
    while (i >= 0 && !this.#isEntry(bytes, i)) i -= 4;
    return i;
  }

  #extract(bytes: Uint8Array, i: number): void {
    if (this.#isEntry(bytes, i)) return;
    const keys = this.#keys;
    const { labels } = this.#row;
    const node = keys.child(0, this.#key.bytes, this.#key.start, this.#key.end);
    const slot = keys.slot[node]!;
    if (slot < 0) return;
    const target = labels.parsedSlot(slot);
    const wants = target === slot ? keyWants.plain : keyWants.extracted;
    if ((keys.wants[node]! & wants) === 0 || labels.isExtracted(target)) return;
    const text = this.#decoded(bytes, i);
    labels.extract(target, text.bytes, text.start, text.end);
  }

  #decoded(bytes: Uint8Array, i: number): TextRange {
    const text = this.#text;
    const { arena } = this.#row.labels;
    decodeJsonString(arena, bytes, this.#bounds[i + 2]!, this.#bounds[i + 3]!, text);
    return text;
  }
}
