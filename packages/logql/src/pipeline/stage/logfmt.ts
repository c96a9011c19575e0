import { fieldKind, scanLogfmtFields } from "@skald/kernels";
import { invalidArgument } from "@skald/model";
import type { Extraction, LogfmtStage } from "../../syntax/ast.js";
import { type Arena, blankBrokenUtf8, hasByte } from "../row/bytes.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row/row.js";
import { labelState, sanitizeLabelName, stageErrors } from "../row/row-labels.js";
import {
  BlockFields,
  canSearch,
  FieldSink,
  type FindFields,
  fieldScan,
  isWanted,
  KeyTree,
  sinkSays,
} from "./fields.js";
import { unescapeInto } from "./json-reader.js";

/** `| logfmt`: every pair becomes a label; tolerant unless strict. */
export function prepareLogfmt(stage: LogfmtStage): PreparedStage {
  return (row, context) => compileLogfmt(stage, row, context);
}

function compileLogfmt(
  { strict, keepEmpty }: LogfmtStage,
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels, line } = row;
  const reader = new LogfmtReader(labels.arena);
  const keys = new KeyTree(labels.names, context.demand);
  const sink = new FieldSink(row, context, strict);
  const scan = fieldScan(row, context, {
    fails: strict,
    find: ({ bytes, offsets }, selection, names, found, { enough }) => {
      const options = { strict, keepEmpty, lastWins: false, enough };
      scanLogfmtFields(bytes, offsets, selection, names, found, options);
    },
  });
  const decode = (target: number, bytes: Uint8Array, from: number, to: number) => {
    reader.decode(bytes, from, to);
    return sink.put(target, reader.valueBytes, reader.valueStart, reader.valueEnd);
  };
  return () => {
    if (!sink.beginRow()) return true;
    const known = scan?.handOver(sink, decode);
    if (known !== undefined) return known !== sinkSays.drop;
    keys.beginLine();
    const { bytes, start } = line;
    reader.begin(bytes, start, line.end);
    while (true) {
      const got = reader.next();
      if (got === "end") return true;
      if (got === "fault") {
        if (!strict) continue;
        labels.fail(stageErrors.logfmt, logfmtFault(reader, start));
        return true;
      }
      if (reader.valueStart === reader.valueEnd && !keepEmpty) continue;
      const node = keys.child(0, bytes, reader.keyStart, reader.keyEnd);
      const slot = keys.slot[node]!;
      if (slot < 0) continue;
      const target = sink.target(slot, keys.wants[node]!);
      if (target < 0) continue;
      const says = sink.put(target, reader.valueBytes, reader.valueStart, reader.valueEnd);
      if (says === sinkSays.drop) return false;
      if (says === sinkSays.done) return true;
    }
  };
}

/** Text of a syntax error; positions count from 1. */
function logfmtFault(reader: LogfmtReader, lineStart: number): string {
  return `logfmt syntax error at pos ${reader.faultAt - lineStart + 1} : ${reader.faultText}`;
}

/**
 * `| logfmt a="x", b`: only these keys. The last value of a key wins, also over that of an earlier parser; a key that is
 * spelled like the label sets it too, and a label that is nowhere gets an empty value.
 */
export function prepareLogfmtKeys(stage: LogfmtStage): PreparedStage {
  const extractions = stage.extractions.map(({ label, path }) => ({
    label,
    path: keyOf(path) ?? label,
  }));
  return (row, context) => compileLogfmtKeys({ ...stage, extractions }, row, context);
}

const keyToken = /^[ \t\n]*([A-Za-z_][A-Za-z0-9_]*|"[^"\]]*["\]]?)/;

/** The key that an expression names, bare or quoted; undefined for one that no key of a line has. */
function keyOf(path: string): string | undefined {
  const tokens: string[] = [];
  let rest = path;
  for (let m = keyToken.exec(rest); m !== null; m = keyToken.exec(rest)) {
    const token = m[1] as string;
    if (tokens.length > 0 && !token.startsWith('"')) {
      throw badKey(path, "syntax error: unexpected KEY, expecting $end or STRING");
    }
    tokens.push(token);
    rest = rest.slice(m[0].length);
  }
  const [char] = rest.replace(/^[ \t\n]+/, "");
  if (char !== undefined) throw badKey(path, `unexpected char ${char}`);
  const [first] = tokens;
  if (first === undefined) {
    throw badKey(path, "syntax error: unexpected $end, expecting STRING or KEY");
  }
  const key = first.replace(/^"|["\]]$/g, "");
  return tokens.length === 1 && key === sanitizeLabelName(key) ? key : undefined;
}

function badKey(path: string, reason: string): Error {
  return invalidArgument(`cannot parse expression [${path}]: ${reason}`);
}

function compileLogfmtKeys(
  { strict, extractions }: LogfmtStage,
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels } = row;
  const { demand } = context;
  const wanted = extractions.filter(({ label }) => isWanted(demand, label));
  if (wanted.length === 0 && !strict) return () => true;
  const parser = new LogfmtKeys(wanted, row, strict, context);
  const labelSlots = wanted.map(({ label }) => labels.names.slotOf(label));
  return () => {
    parser.run();
    const { bytes, start } = row.line;
    for (const slot of labelSlots) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}

class LogfmtKeys {
  readonly #row: RowState;
  readonly #reader: LogfmtReader;
  readonly #strict: boolean;
  readonly #keys: KeyTree;
  /** By slot of a key: the labels that it sets. */
  readonly #targets: number[][] = [];
  /** Slots of the keys that are searched in whole blocks. */
  readonly #slots: readonly number[];
  readonly #fields: BlockFields | undefined;

  constructor(
    wanted: readonly Extraction[],
    row: RowState,
    strict: boolean,
    context: StageContext,
  ) {
    const { names, arena } = row.labels;
    this.#row = row;
    this.#reader = new LogfmtReader(arena);
    this.#strict = strict;
    for (const { label, path } of wanted) {
      for (const key of new Set([sanitizeLabelName(path), label])) {
        const slot = names.slotOf(key);
        this.#targets[slot] = [...(this.#targets[slot] ?? []), names.slotOf(label)];
      }
    }
    const keys = new Set(wanted.flatMap(({ label, path }) => [sanitizeLabelName(path), label]));
    this.#keys = new KeyTree(names, keys);
    this.#slots = [...keys].map((key) => names.slotOf(key));
    if (!canSearch([...keys], context)) return;
    const fields = new BlockFields([...keys], this.#find);
    row.beforeRows(({ lines, selection }) => fields.search(lines, selection, wholeLines));
    this.#fields = fields;
  }

  readonly #find: FindFields = ({ bytes, offsets }, selection, names, found, { enough }) => {
    const options = { strict: this.#strict, keepEmpty: true, lastWins: true, enough };
    scanLogfmtFields(bytes, offsets, selection, names, found, options);
  };

  run(): void {
    if (this.#fields?.begin(this.#row.position)) this.#takeFound(this.#fields);
    else this.#readLine();
  }

  #takeFound(fields: BlockFields): void {
    const { bytes } = this.#row.line;
    const reader = this.#reader;
    const { start, length, kind, capacity } = fields.columns;
    for (let i = 0; i < fields.count; i++) {
      const field = fields.order[i]!;
      const place = field * capacity + this.#row.position;
      const from = start[place]!;
      const to = from + length[place]!;
      const targets = this.#targets[this.#slots[field]!]!;
      if (kind[place] === fieldKind.plain) {
        this.#extract(targets, bytes, from, to);
      } else {
        reader.decode(bytes, from, to);
        this.#extract(targets, reader.valueBytes, reader.valueStart, reader.valueEnd);
      }
    }
  }

  #readLine(): void {
    const { labels, line } = this.#row;
    const { bytes, start, end } = line;
    const reader = this.#reader;
    this.#keys.beginLine();
    reader.begin(bytes, start, end);
    for (let got = reader.next(); got !== "end"; got = reader.next()) {
      if (got === "fault") {
        if (!this.#strict) continue;
        labels.fail(stageErrors.logfmt, logfmtFault(reader, start));
        return;
      }
      const node = this.#keys.child(0, bytes, reader.keyStart, reader.keyEnd);
      const targets = this.#targets[this.#keys.slot[node]!];
      if (targets === undefined) continue;
      this.#extract(targets, reader.valueBytes, reader.valueStart, reader.valueEnd);
    }
  }

  #extract(targets: readonly number[], bytes: Uint8Array, from: number, to: number): void {
    const { labels } = this.#row;
    for (const slot of targets) labels.extract(labels.parsedSlot(slot), bytes, from, to);
  }
}

const wholeLines = { complete: true, enough: 0 };

/**
 * Reads `k=v k2="quoted" flag` pair by pair from bytes. After `next()` the key is
 * `bytes[keyStart .. keyEnd)` and the value `valueBytes[valueStart .. valueEnd)`; at a fault the rest of the word is
 * skipped by the next call.
 */
class LogfmtReader {
  keyStart = 0;
  keyEnd = 0;
  valueBytes: Uint8Array = new Uint8Array(0);
  valueStart = 0;
  valueEnd = 0;
  /** Set when `next` answers "fault". */
  faultText = "";
  /** Offset in the line, from 0. */
  faultAt = 0;
  readonly #arena: Arena;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  #skips = false;

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  begin(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#skips = false;
  }

  next(): "pair" | "fault" | "end" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.#at;
    if (this.#skips) {
      while (at < end && bytes[at]! > 32) at++;
      this.#skips = false;
    }
    while (at < end && bytes[at]! <= 32) at++;
    if (at >= end) return "end";
    this.keyStart = at;
    let c = 0;
    let bits = 0;
    while (at < end) {
      c = bytes[at]!;
      if (c === 61 || c === 34 || c <= 32) break;
      bits |= c;
      at++;
    }
    this.keyEnd = at;
    const stop = at < end ? c : 32;
    if (stop === 34 || (stop === 61 && at === this.keyStart)) {
      return this.#fault(at, `unexpected '${String.fromCharCode(stop)}'`);
    }
    if (bits >= 128 && this.#isBroken(this.keyStart, at)) return this.#fault(at, "invalid key");
    this.valueBytes = bytes;
    this.valueStart = at;
    this.valueEnd = at;
    this.#at = at;
    if (stop !== 61) return "pair";
    at++;
    return at < end && bytes[at] === 34 ? this.#quoted(at) : this.#bare(at);
  }

  /** Makes a value that another scan found (escapes sound, without its quotes) the one that was read last. */
  decode(bytes: Uint8Array, from: number, to: number): void {
    const isQuoted = bytes[from - 1] === 34;
    if (isQuoted && hasByte(bytes, from, to, 92)) {
      const start = unescapeInto(this.#arena, bytes, from, to, true);
      this.#setValue(this.#arena.bytes, start, this.#arena.used, 128);
    } else this.#setValue(bytes, from, to, 128);
  }

  #bare(from: number): "pair" | "fault" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = from;
    let bits = 0;
    while (at < end) {
      const c = bytes[at]!;
      if (c <= 32) break;
      if (c === 61 || c === 34) return this.#fault(at, `unexpected '${String.fromCharCode(c)}'`);
      bits |= c;
      at++;
    }
    this.#at = at;
    this.#setValue(bytes, from, at, bits);
    return "pair";
  }

  #quoted(open: number): "pair" | "fault" {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = open + 1;
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
    if (at >= end) return this.#fault(end, "unterminated quoted value");
    this.#at = at + 1;
    if (!escaped) {
      this.#setValue(bytes, open + 1, at, bits);
      return "pair";
    }
    const start = unescapeInto(this.#arena, bytes, open + 1, at, true);
    if (start < 0) return this.#fault(at + 1, "invalid quoted value");
    // an escape may have made a sign that is to become a blank
    this.#setValue(this.#arena.bytes, start, this.#arena.used, 128);
    return "pair";
  }

  #setValue(bytes: Uint8Array, start: number, end: number, bits: number): void {
    const repaired = bits < 128 ? -1 : blankBrokenUtf8(this.#arena, bytes, start, end);
    this.valueBytes = repaired < 0 ? bytes : this.#arena.bytes;
    this.valueStart = repaired < 0 ? start : repaired;
    this.valueEnd = repaired < 0 ? end : this.#arena.used;
  }

  #isBroken(start: number, end: number): boolean {
    return blankBrokenUtf8(this.#arena, this.#bytes, start, end) >= 0;
  }

  #fault(at: number, text: string): "fault" {
    this.faultText = text;
    this.faultAt = at;
    this.#at = at;
    this.#skips = true;
    return "fault";
  }
}
