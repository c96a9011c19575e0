import { fieldKind, scanJsonFields, scanJsonKeys } from "@skald/kernels";
import { invalidArgument } from "@skald/model";
import type { JsonStage } from "../../syntax/ast.js";
import { Arena, bytesEqual, encodeText, hasByte } from "../row/bytes.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row/row.js";
import { type CurrentLabels, labelState, stageErrors } from "../row/row-labels.js";
import {
  BlockFields,
  canSearch,
  demandsErrors,
  type FieldScan,
  FieldSink,
  fieldScan,
  isWanted,
  KeyTree,
  keyWants,
  sinkSays,
} from "./fields.js";
import {
  decodeJsonString,
  emptyText,
  JsonReader,
  jsonClosed,
  jsonFault,
  jsonFaultText,
  jsonValue,
  type TextRange,
  unescapeInto,
} from "./json-reader.js";

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
    this.#sink = new FieldSink(row, context, true);
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

/** One step of a path: a member name, or an index. */
type PathStep = { readonly text: string; readonly bytes: Uint8Array } | number;

interface PathExtraction {
  readonly label: string;
  readonly path: readonly PathStep[];
}

/**
 * `| json a="b.c[0]", d`: the values at these paths, also in place of what an earlier parser found; one that leads nowhere
 * or cannot be read gives an empty label.
 */
export function prepareJsonPaths(stage: JsonStage): PreparedStage {
  const extractions = stage.extractions.map(({ label, path }) => ({
    label,
    path: parseJsonPath(path).map((step) =>
      typeof step === "number" ? step : { text: step, bytes: encodeText(step) },
    ),
  }));
  return (row, context) => compileJsonPaths(extractions, row, context);
}

function compileJsonPaths(
  extractions: readonly PathExtraction[],
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels, line } = row;
  const { demand } = context;
  const asksForErrors = demandsErrors(demand);
  // A line that is no JSON fails also where none of its values is used.
  const used = extractions.filter(({ label }) => asksForErrors || isWanted(demand, label));
  const wanted = used.map(({ label, path }) => ({
    slot: labels.names.slotOf(label),
    path,
    isTwice: used.filter((other) => other.label === label).length > 1,
  }));
  const finder = new JsonFinder();
  const keys = keySearch(used, row, context);
  const text = emptyText();
  const slots = wanted.map(({ slot }) => slot);
  return () => {
    const { bytes, start, end } = line;
    if (keys?.begin(row.position)) takeKeys(keys, slots, row, text);
    else {
      if (start === end) return true;
      const first = bytes[start];
      if (first !== 123 && first !== 91 && first !== 34) {
        labels.fail(stageErrors.json);
        return true;
      }
      finder.beginLine();
      for (const { slot, path, isTwice } of wanted) {
        if (!finder.find(bytes, start, end, path)) continue;
        if (finder.fault === jsonFault.none) finder.extract(labels, slot, isTwice);
        else labels.fail(stageErrors.json, jsonFaultText[finder.fault]!);
      }
    }
    for (const slot of slots) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}

/** The search in whole blocks, where each path is one key and each label stands once; undefined elsewhere. */
function keySearch(
  used: readonly PathExtraction[],
  row: RowState,
  context: StageContext,
): BlockFields | undefined {
  const keys = used.flatMap(({ path: [key, ...more] }) =>
    key === undefined || typeof key === "number" || more.length > 0 ? [] : [key.text],
  );
  const labels = new Set(used.map(({ label }) => label));
  const isPlain = keys.length === used.length && labels.size === used.length;
  if (!isPlain || !canSearch(keys, context)) return undefined;
  // What follows the last key does not matter, not even a fault.
  const options = { complete: false, enough: 2 ** keys.length - 1 };
  const fields = new BlockFields(keys, ({ bytes, offsets }, selection, names, found, { enough }) =>
    scanJsonKeys(bytes, offsets, selection, names, found, { enough }),
  );
  row.beforeRows(({ lines, selection }) => fields.search(lines, selection, options));
  return fields;
}

/** Extracts the values that a search found in the current row, for labels with these slots; `text` is used on the way. */
function takeKeys(
  fields: BlockFields,
  slots: readonly number[],
  { labels, line, position }: RowState,
  text: TextRange,
): void {
  const { start, length, kind, capacity } = fields.columns;
  for (let i = 0; i < fields.count; i++) {
    const field = fields.order[i]!;
    const place = field * capacity + position;
    const target = labels.parsedSlot(slots[field]!);
    const from = start[place]!;
    const to = from + length[place]!;
    if (kind[place] === fieldKind.plain) labels.extract(target, line.bytes, from, to);
    else {
      decodeJsonString(labels.arena, line.bytes, from, to, text);
      labels.extract(target, text.bytes, text.start, text.end);
    }
  }
}

/** Finds the value at a path; tolerant of what stands behind it. */
class JsonFinder {
  /** What is wrong with the value that was found last. */
  fault: number = jsonFault.none;
  readonly #reader = new JsonReader();
  readonly #arena = new Arena();
  readonly #text = emptyText();
  /** Where in the line the value of a label begins that stands twice in the stage. */
  readonly #places = new Map<number, number>();

  /** Finds the value. Among equal names the first that leads to a value counts. */
  find(bytes: Uint8Array, from: number, end: number, path: readonly PathStep[], step = 0): boolean {
    const reader = this.#reader;
    const head = path[step]!;
    const isIndex = typeof head === "number";
    let fault = reader.open(bytes, from, end, isIndex ? 91 : 123);
    for (let index = 0; fault === jsonFault.none; index++) {
      if ((isIndex ? reader.nextItem(93) : reader.nextKey()) !== jsonFault.none) return false;
      const { at } = reader;
      const isHit = isIndex ? index === head : this.#isKey(head.bytes);
      if (isHit && step + 1 < path.length) {
        if (this.find(bytes, at, end, path, step + 1)) return true;
        reader.resume(at, end);
      }
      fault = reader.readValue();
      if (isHit && step + 1 === path.length) {
        this.fault = fault;
        return true;
      }
    }
    return false;
  }

  beginLine(): void {
    if (this.#places.size > 0) this.#places.clear();
  }

  /**
   * Extracts what was found: null as an empty value, a string without its escapes, anything else as it stands. Of a
   * label that stands twice in the stage the value that comes last in the line counts.
   */
  extract(labels: CurrentLabels, slot: number, isTwice: boolean): void {
    const target = labels.parsedSlot(slot);
    const { bytes, valueStart, valueEnd, kind, isPlain } = this.#reader;
    const place = isTwice ? this.#places.get(target) : undefined;
    if (place !== undefined && place > valueStart) return;
    if (isTwice) this.#places.set(target, valueStart);
    if (kind === jsonValue.string && !isPlain) {
      const text = this.#text;
      decodeJsonString(labels.arena, bytes, valueStart, valueEnd, text);
      labels.extract(target, text.bytes, text.start, text.end);
    } else {
      labels.extract(target, bytes, valueStart, kind === jsonValue.null ? valueStart : valueEnd);
    }
  }

  #isKey(key: Uint8Array): boolean {
    const { bytes, keyStart, keyEnd, keyEscaped } = this.#reader;
    if (!keyEscaped) return bytesEqual(bytes, keyStart, keyEnd, key);
    this.#arena.used = 0;
    const from = unescapeInto(this.#arena, bytes, keyStart, keyEnd);
    return from >= 0 && bytesEqual(this.#arena.bytes, from, this.#arena.used, key);
  }
}

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
  /** The bounds of the key and of the text of each string member, with their escapes. */
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

  /** Reads all members first: a line that is malformed anywhere gives nothing. */
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

/** Where a value stands: member names and array indexes from the outside in. */
type JsonPath = readonly (string | number)[];

interface Token {
  readonly kind: "FIELD" | "STRING" | "INDEX" | "." | "[" | "]" | "$end";
  readonly text: string;
}

/**
 * Parses the path of `json label="a.b[0][\"key with blank\"]"`; blanks may stand between its parts. Throws
 * invalid_argument with the text `cannot parse expression [...]: ...`.
 */
export function parseJsonPath(expression: string): JsonPath {
  const fail = (reason: string): never => {
    throw invalidArgument(`cannot parse expression [${expression}]: ${reason}`);
  };
  const tokens = tokenize(expression, fail);
  const expect = (at: number, ...kinds: Token["kind"][]): Token => {
    const token = tokens[at] as Token;
    if (kinds.includes(token.kind)) return token;
    return fail(`syntax error: unexpected ${token.kind}, expecting ${kinds.join(" or ")}`);
  };
  const path: (string | number)[] = [];
  for (let at = 0; tokens[at]?.kind !== "$end" || path.length === 0; ) {
    const { kind } = path.length === 0 ? expect(at, "FIELD", "[") : (tokens[at] as Token);
    if (kind === "[") {
      const key = expect(at + 1, "STRING", "INDEX");
      path.push(key.kind === "INDEX" ? Number(key.text) : key.text);
      expect(at + 2, "]");
      at += 3;
    } else if (path.length === 0) {
      path.push(expect(at, "FIELD").text);
      at++;
    } else if (kind === ".") {
      path.push(expect(at + 1, "FIELD").text);
      at += 2;
    } else fail(`syntax error: unexpected ${kind}`);
  }
  return path;
}

/** A text ends at the next quote or bracket, and has no escapes. */
const tokenAt =
  /[ \t\n]*(?:([A-Za-z_][A-Za-z0-9_]*)|"([^"\]]*)["\]]?|(\d+)(?=[ \t\n\]])|([.[\]]))/y;

function tokenize(expression: string, fail: (reason: string) => never): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  for (;;) {
    tokenAt.lastIndex = end;
    const m = tokenAt.exec(expression);
    if (m === null) break;
    end = tokenAt.lastIndex;
    const [, field, quoted, index, sign] = m;
    if (field !== undefined) tokens.push({ kind: "FIELD", text: field });
    else if (quoted !== undefined) tokens.push({ kind: "STRING", text: quoted });
    else if (index !== undefined) tokens.push({ kind: "INDEX", text: index });
    else tokens.push({ kind: sign as "." | "[" | "]", text: "" });
  }
  const rest = expression.slice(end).trimStart();
  const number = /^\d+(.?)/su.exec(rest);
  if (number?.[1] === ".") fail("cannot use float as array index");
  if (number !== null) fail(`non-integer value: ${number[1]}`);
  if (rest !== "") fail(`unexpected char ${[...rest][0]}`);
  return [...tokens, { kind: "$end", text: "" }];
}
