import { Arena, bytesEqual, encodeText } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { blankBrokenUtf8 } from "../../row/utf8-blank.js";
import { KeyTree, keyWants } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { jsonFault, jsonFaultText, unescapeInto } from "./bytes.js";
import { JsonMembers } from "./members.js";
import { extractJsonString } from "./paths.js";

const entryKey = encodeText("_entry");

/** `| unpack`: undoes the packing of an agent: the labels come back and the line is the member `_entry`. */
export const prepareUnpack: PreparedStage = (row, context) => {
  const unpacker = new Unpacker(row, context);
  return () => unpacker.run();
};

class Unpacker {
  readonly #row: RowState;
  readonly #keys: KeyTree;
  readonly #members = new JsonMembers();
  /** Keys without escapes. */
  readonly #arena = new Arena();
  #keyBytes: Uint8Array = new Uint8Array(0);
  #keyStart = 0;
  #keyEnd = 0;

  constructor(row: RowState, { demand }: StageContext) {
    this.#row = row;
    this.#keys = new KeyTree(row.labels.names, demand);
  }

  run: RowStage = () => {
    const { labels, line } = this.#row;
    const { bytes, start, end } = line;
    if (start === end || bytes[start] !== 123) {
      labels.fail(stageErrors.json, "expecting json object(6), but it is not");
      return true;
    }
    const members = this.#members;
    const fault = this.#readMembers(bytes, start, end);
    if (fault !== jsonFault.none) {
      labels.fail(stageErrors.json, jsonFaultText[fault] as string);
      return true;
    }
    const entry = this.#findEntry(bytes);
    if (entry < 0) return true;
    this.#keys.beginLine();
    for (let i = 0; i < members.count; i++) if (members.isString[i]) this.#extract(bytes, i);
    this.#replaceLine(bytes, members.valueStart[entry]!, members.valueEnd[entry]!);
    return true;
  };

  /** A wrong escape in a key spoils the line, as anything malformed does. */
  #readMembers(bytes: Uint8Array, start: number, end: number): number {
    const fault = this.#members.read(bytes, start, end);
    for (let i = 0; i < this.#members.keyCount; i++) {
      if (!this.#readKey(bytes, i)) return jsonFault.escape;
    }
    return fault;
  }

  #readKey(bytes: Uint8Array, i: number): boolean {
    const from = this.#members.keyStart[i]!;
    const to = this.#members.keyEnd[i]!;
    this.#keyBytes = bytes;
    this.#keyStart = from;
    this.#keyEnd = to;
    for (let at = from; at < to; at++) {
      if (bytes[at] !== 92) continue;
      this.#arena.used = 0;
      const start = unescapeInto(this.#arena, bytes, from, to);
      this.#keyBytes = this.#arena.bytes;
      this.#keyStart = start;
      this.#keyEnd = this.#arena.used;
      return start >= 0;
    }
    return true;
  }

  #isEntryKey(): boolean {
    return bytesEqual(this.#keyBytes, this.#keyStart, this.#keyEnd, entryKey);
  }

  /** The last string member `_entry`, or -1. */
  #findEntry(bytes: Uint8Array): number {
    for (let i = this.#members.count - 1; i >= 0; i--) {
      if (this.#members.isString[i] && this.#readKey(bytes, i) && this.#isEntryKey()) return i;
    }
    return -1;
  }

  #extract(bytes: Uint8Array, i: number): void {
    this.#readKey(bytes, i);
    if (this.#isEntryKey()) return;
    const keys = this.#keys;
    const { labels } = this.#row;
    const node = keys.child(0, this.#keyBytes, this.#keyStart, this.#keyEnd);
    const slot = keys.slot[node]!;
    if (slot < 0) return;
    const target = labels.parsedSlot(slot);
    const wants = target === slot ? keyWants.plain : keyWants.extracted;
    if ((keys.wants[node]! & wants) === 0 || labels.isExtracted(target)) return;
    extractJsonString(
      labels,
      target,
      bytes,
      this.#members.valueStart[i]!,
      this.#members.valueEnd[i]!,
    );
  }

  #replaceLine(bytes: Uint8Array, from: number, to: number): void {
    const { labels, line } = this.#row;
    const { arena } = labels;
    const start = unescapeInto(arena, bytes, from, to);
    if (start < 0) {
      line.replace(bytes, from, from);
      return;
    }
    const source = arena.bytes;
    const stop = arena.used;
    const repaired = blankBrokenUtf8(arena, source, start, stop);
    if (repaired < 0) line.replace(source, start, stop);
    else line.replace(arena.bytes, repaired, arena.used);
  }
}
