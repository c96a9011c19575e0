import { scanJsonFields } from "@skald/kernels";
import type { Arena } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { type FieldScan, fieldScan } from "../fields/field-scan.js";
import { FieldSink, sinkSays } from "../fields/field-sink.js";
import { KeyTree, keyWants } from "../fields/key-tree.js";
import type { PreparedStage, RowState, StageContext } from "../row-state.js";
import { JsonReader, jsonClosed, jsonFault, jsonFaultText, jsonValue } from "./reader.js";
import { decodeJsonString, emptyText, unescapeInto } from "./string.js";

/** Deeper objects are not read: each level is scanned once more. */
const depthMax = 128;

/** `| json`: every scalar of the object becomes a label, nested names joined by `_`. */
export const prepareJson: PreparedStage = (row, context) => {
  const parser = new JsonParser(row, context);
  return () => parser.run();
};

/** Codes of a walk: a fault, or one of these behind them. */
const walk = { dropped: 100, done: 101 } as const;

class JsonParser {
  readonly #row: RowState;
  readonly #arena: Arena;
  readonly #keys: KeyTree;
  readonly #sink: FieldSink;
  readonly #scan: FieldScan | undefined;
  readonly #reader = new JsonReader();
  readonly #text = emptyText();

  constructor(row: RowState, context: StageContext) {
    this.#row = row;
    this.#arena = row.labels.arena;
    this.#keys = new KeyTree(row.labels.names, context.demand);
    this.#sink = new FieldSink(row, context);
    this.#scan = fieldScan(row, context, {
      fails: true,
      find: ({ bytes, offsets }, selection, names, found, options) =>
        scanJsonFields(bytes, offsets, selection, names, found, options),
    });
  }

  run(): boolean {
    if (!this.#sink.beginRow()) return true;
    const says = this.#scan?.handOver(this.#sink, this.#decode);
    if (says !== undefined) return says !== sinkSays.drop;
    this.#keys.beginLine();
    const { bytes, start, end } = this.#row.line;
    const code = this.#readObject(bytes, start, end, 0, 0);
    if (code === walk.dropped) return false;
    if (code !== jsonFault.none && code !== walk.done) {
      this.#row.labels.fail(stageErrors.json, jsonFaultText[code]!);
    }
    return true;
  }

  /** Reads the object that the range begins with; what follows it is not looked at. */
  #readObject(bytes: Uint8Array, from: number, end: number, parent: number, depth: number): number {
    if (depth >= depthMax) return jsonFault.deep;
    const reader = this.#reader;
    const keys = this.#keys;
    let code = reader.open(bytes, from, end);
    while (code === jsonFault.none) {
      code = reader.nextKey();
      if (code !== jsonFault.none && code !== jsonFault.colon) break;
      const node = reader.keyEscaped
        ? this.#escapedKey(parent)
        : keys.child(parent, bytes, reader.keyStart, reader.keyEnd);
      if (node < 0) return jsonFault.escape;
      if (code === jsonFault.none) code = reader.readValue();
      if (code !== jsonFault.none) break;
      const { kind } = reader;
      if (kind <= jsonValue.word) {
        const slot = keys.slot[node]!;
        if (slot >= 0) code = this.#take(node, slot);
      } else if (kind === jsonValue.object && this.#wantsMembers(node)) {
        const close = reader.at;
        code = this.#readObject(bytes, reader.valueStart, close, node, depth + 1);
        reader.resume(close, end);
      }
    }
    return code === jsonClosed ? jsonFault.none : code;
  }

  #escapedKey(parent: number): number {
    const { bytes, keyStart, keyEnd } = this.#reader;
    const arena = this.#arena;
    const from = unescapeInto(arena, bytes, keyStart, keyEnd);
    return from < 0 ? -1 : this.#keys.child(parent, arena.bytes, from, arena.used);
  }

  #wantsMembers(node: number): boolean {
    return (this.#keys.wants[node]! & keyWants.members) !== 0;
  }

  /** Hands over the scalar that was read last. */
  #take(node: number, slot: number): number {
    const target = this.#sink.target(slot, this.#keys.wants[node]!);
    if (target < 0) return jsonFault.none;
    const { bytes, valueStart, valueEnd, kind, isPlain } = this.#reader;
    const says =
      isPlain || kind === jsonValue.word
        ? this.#sink.put(target, bytes, valueStart, valueEnd)
        : this.#decode(target, bytes, valueStart, valueEnd);
    if (says === sinkSays.goOn) return jsonFault.none;
    return says === sinkSays.drop ? walk.dropped : walk.done;
  }

  /** Hands over a string with escapes or bytes beyond ASCII. */
  readonly #decode = (target: number, bytes: Uint8Array, from: number, to: number): number => {
    const text = this.#text;
    decodeJsonString(this.#arena, bytes, from, to, text);
    return this.#sink.put(target, text.bytes, text.start, text.end);
  };
}
