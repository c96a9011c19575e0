import type { Arena } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { type FieldScan, fieldScan } from "../fields/field-scan.js";
import { FieldSink, sinkSays } from "../fields/field-sink.js";
import { KeyTree, keyWants } from "../fields/key-tree.js";
import type { PreparedStage, RowState, StageContext } from "../row-state.js";
import {
  blockEnd,
  decodeJsonString,
  emptyText,
  jsonDepthMax,
  jsonFault,
  jsonFaultText,
  skipBlanks,
  tokenEnd,
  tokenKind,
  unescapeInto,
} from "./bytes.js";

/** `| json`: every scalar of the object becomes a label, nested names joined by `_`. */
export const prepareJson: PreparedStage = (row, context) => {
  const scanner = new JsonScanner(row, context);
  return () => scanner.run();
};

/** Codes of a walk: a fault, or one of these behind them. */
const walk = { dropped: 100, done: 101 } as const;

class JsonScanner {
  readonly #row: RowState;
  readonly #arena: Arena;
  readonly #keys: KeyTree;
  readonly #sink: FieldSink;
  readonly #scan: FieldScan | undefined;
  readonly #text = emptyText();

  constructor(row: RowState, context: StageContext) {
    this.#row = row;
    this.#arena = row.labels.arena;
    this.#keys = new KeyTree(row.labels.names, context.demand);
    this.#sink = new FieldSink(row, context);
    this.#scan = fieldScan(row, context, { kind: "json", fails: true, keepEmpty: true });
  }

  run(): boolean {
    if (!this.#sink.beginRow()) return true;
    const says = this.#scan?.handOver(this.#sink, this.#decode);
    if (says !== undefined) return says !== sinkSays.drop;
    this.#keys.beginLine();
    const { bytes, start, end } = this.#row.line;
    const code = this.#object(bytes, start, end, 0, 0);
    if (code === walk.dropped) return false;
    if (code !== jsonFault.none && code !== walk.done) {
      this.#row.labels.fail(stageErrors.json, jsonFaultText[code] as string);
    }
    return true;
  }

  /** Reads the object at `from`; what follows it is not looked at. */
  #object(bytes: Uint8Array, from: number, end: number, parent: number, depth: number): number {
    let at = skipBlanks(bytes, from, end);
    if (at >= end || bytes[at] !== 123) return jsonFault.object;
    at = skipBlanks(bytes, at + 1, end);
    if (at >= end) return jsonFault.json;
    const keys = this.#keys;
    while (true) {
      const c = bytes[at]!;
      if (c === 125) return jsonFault.none;
      if (c !== 34) return jsonFault.object;
      const keyStart = at + 1;
      let keyEnd = keyStart;
      let escaped = false;
      while (keyEnd < end) {
        const k = bytes[keyEnd]!;
        if (k === 34) break;
        if (k === 92) {
          escaped = true;
          keyEnd++;
        }
        keyEnd++;
      }
      if (keyEnd >= end) return jsonFault.json;
      const node = escaped
        ? this.#escapedKey(bytes, keyStart, keyEnd, parent)
        : keys.child(parent, bytes, keyStart, keyEnd);
      if (node < 0) return jsonFault.escape;
      at = keyEnd + 1;
      if (bytes[at] !== 58 || at >= end) {
        at = skipBlanks(bytes, at, end);
        if (at >= end || bytes[at] !== 58) return jsonFault.json;
      }
      at++;
      const v = bytes[at]!;
      if (at >= end || v === 32 || v === 10 || v === 13 || v === 9) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.json;
      }
      this.#at = at;
      const code = this.#value(bytes, at, end, node, depth);
      if (code !== jsonFault.none) return code;
      at = this.#at;
      if (bytes[at] !== 44 || at >= end) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.array;
        if (bytes[at] === 125) return jsonFault.none;
        if (bytes[at] !== 44) return jsonFault.object;
      }
      at++;
      if (bytes[at] !== 34 || at >= end) {
        at = skipBlanks(bytes, at, end);
        if (at >= end) return jsonFault.array;
      }
    }
  }

  /** Offset behind the last value read. */
  #at = 0;

  #value(bytes: Uint8Array, at: number, end: number, node: number, depth: number): number {
    const c = bytes[at]!;
    if (c === 34) return this.#string(bytes, at + 1, end, node);
    if (c === 123 || c === 91) {
      const close = blockEnd(bytes, at, end);
      if (close < 0) return c === 123 ? jsonFault.object : jsonFault.array;
      if (c === 123 && (this.#keys.wants[node]! & keyWants.members) !== 0) {
        if (depth + 1 >= jsonDepthMax) return jsonFault.deep;
        const code = this.#object(bytes, at, close, node, depth + 1);
        if (code !== jsonFault.none) return code;
      }
      this.#at = close;
      return jsonFault.none;
    }
    const stop = tokenEnd(bytes, at, end);
    const kind = tokenKind(bytes, at, stop);
    if (kind === "unknown") return jsonFault.unknown;
    this.#at = stop;
    if (kind === "null") return jsonFault.none;
    const slot = this.#keys.slot[node]!;
    if (slot < 0) return jsonFault.none;
    const target = this.#sink.target(slot, this.#keys.wants[node]!);
    return target < 0 ? jsonFault.none : this.#put(target, bytes, at, stop);
  }

  #string(bytes: Uint8Array, from: number, end: number, node: number): number {
    let at = from;
    let bits = 0;
    let escaped = false;
    while (at < end) {
      const c = bytes[at]!;
      if (c === 34) break;
      if (c === 92) {
        escaped = true;
        at++;
      }
      bits |= c;
      at++;
    }
    if (at >= end) return jsonFault.string;
    this.#at = at + 1;
    const slot = this.#keys.slot[node]!;
    if (slot < 0) return jsonFault.none;
    const target = this.#sink.target(slot, this.#keys.wants[node]!);
    if (target < 0) return jsonFault.none;
    if (!escaped && bits < 128) return this.#put(target, bytes, from, at);
    return walkOf(this.#decode(target, bytes, from, at));
  }

  /** Hands over a string with escapes or bytes beyond ASCII. */
  readonly #decode = (target: number, bytes: Uint8Array, from: number, to: number): number => {
    const text = this.#text;
    decodeJsonString(this.#arena, bytes, from, to, text);
    return this.#sink.put(target, text.bytes, text.start, text.end);
  };

  #put(target: number, bytes: Uint8Array, start: number, end: number): number {
    return walkOf(this.#sink.put(target, bytes, start, end));
  }

  #escapedKey(bytes: Uint8Array, start: number, end: number, parent: number): number {
    const arena = this.#arena;
    const from = unescapeInto(arena, bytes, start, end);
    if (from < 0) return -1;
    return this.#keys.child(parent, arena.bytes, from, arena.used);
  }
}

function walkOf(says: number): number {
  if (says === sinkSays.goOn) return jsonFault.none;
  return says === sinkSays.drop ? walk.dropped : walk.done;
}
