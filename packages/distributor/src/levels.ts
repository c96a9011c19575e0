import { detectLevels, normaliseLevel, type RawPush } from "@skald/kernels";
import { detectedLevelName, levelInMetadata, levelNames, paddingBytes } from "@skald/model";
import type { MetadataNames } from "@skald/push";
import type { PushLimits } from "./config.js";

/** The level that the labels of a stream give to all of its rows. */
export interface StreamLevel {
  /** Level code; 0 when the labels have no level. */
  readonly level: number;
  /** The level as a label spells it. */
  readonly levelText: string;
}

interface DiscoverInput {
  readonly push: RawPush;
  readonly streams: readonly StreamLevel[];
  readonly names: MetadataNames;
  readonly limits: PushLimits;
}

interface Discovered {
  /** Level code of each row of the push. */
  readonly levels: Uint8Array;
  /** Levels outside the table that labels or other metadata gave; they become metadata of their rows. */
  readonly foreign: ForeignLevels;
}

/** Rows that are looked at between two yields. */
const rowsPerStep = 8192;
/** The cost of a stream beside its rows, in rows. */
const rowsPerStream = 8;

/**
 * Finds the level of each row: its metadata `detected_level`, else the labels of its stream, else other metadata that
 * names a level, else its line. The kernel gets only the rows that nothing else decided. Yields where other work may
 * run first.
 */
export function* discoverLevels(input: DiscoverInput): Generator<void, Discovered> {
  const { push, limits } = input;
  const levels = new Uint8Array(push.rowCount);
  const foreign = new ForeignLevels(push);
  const metadata = new MetadataLevels(push, input.names, limits);
  const discovers = limits.discover_log_levels && limits.allow_structured_metadata;
  let left = rowsPerStep;
  for (let ordinal = 0; ordinal < push.streamCount; ordinal++) {
    const stream = input.streams[ordinal]!;
    const end = push.streamRowStart[ordinal + 1]!;
    left -= rowsPerStream;
    for (let from = push.streamRowStart[ordinal]!; from < end; ) {
      const to = Math.min(end, from + Math.max(1, left));
      if (metadata.decides) metadata.readRows(from, to, stream, levels, foreign);
      else if (stream.level !== 0) applyLabel(stream, from, to, levels, foreign);
      left -= to - from;
      from = to;
      if (left > 0) continue;
      yield;
      left = rowsPerStep;
    }
  }
  if (discovers) yield* searchLines(push, limits, levels);
  return { levels, foreign };
}

function applyLabel(
  stream: StreamLevel,
  from: number,
  to: number,
  levels: Uint8Array,
  foreign: ForeignLevels,
): void {
  levels.fill(stream.level, from, to);
  if (stream.level !== levelInMetadata) return;
  for (let row = from; row < to; row++) foreign.setText(row, stream.levelText);
}

/** Lets the kernel search the lines of the rows that have no level yet. */
function* searchLines(
  push: RawPush,
  limits: PushLimits,
  levels: Uint8Array,
): Generator<void, undefined> {
  const options = {
    fields: limits.log_level_fields,
    jsonMaxDepth: limits.log_level_from_json_max_depth,
  };
  const { lineStart, lineLength, rows, found } = searched;
  for (let from = 0; from < push.rowCount; from += rowsPerStep) {
    const to = Math.min(push.rowCount, from + rowsPerStep);
    let count = 0;
    for (let row = from; row < to; row++) {
      if (levels[row] !== 0) continue;
      lineStart[count] = push.lineStart[row]!;
      lineLength[count] = push.lineLength[row]!;
      rows[count++] = row;
    }
    if (count > 0) detectLevels(push.bytes, lineStart, lineLength, count, found, options);
    for (let i = 0; i < count; i++) levels[rows[i]!] = found[i]!;
    if (to < push.rowCount) yield;
  }
}

/** The rows of one step of a search; no search needs them across a yield. */
const searched = {
  lineStart: new Uint32Array(rowsPerStep),
  lineLength: new Uint32Array(rowsPerStep),
  rows: new Uint32Array(rowsPerStep),
  found: new Uint8Array(rowsPerStep),
};

/** Ranks of metadata names, best first; a name that has nothing to do with levels has `noRank`. */
const detectedRank = 0;
const firstFieldRank = 1;
const severityNumber = "severity_number";
const noRank = 0xffff;

/** Longest text that can be a level of the table. */
const maxLevelBytes = 16;
const maxMemo = 1024;

/** Reads levels from structured metadata. */
class MetadataLevels {
  /** Whether any metadata name of the push can decide about a level. */
  readonly decides: boolean;
  readonly #push: RawPush;
  readonly #names: MetadataNames;
  readonly #discovers: boolean;
  readonly #rankOf: Uint16Array;
  readonly #severityRank: number;
  #memo: Map<string, number> | undefined;

  constructor(push: RawPush, names: MetadataNames, limits: PushLimits) {
    this.#push = push;
    this.#names = names;
    this.#discovers = limits.discover_log_levels && limits.allow_structured_metadata;
    const fields = this.#discovers ? limits.log_level_fields : [];
    this.#severityRank = firstFieldRank + fields.length;
    const rankOf = new Uint16Array(names.names.length);
    let decides = false;
    for (let i = 0; i < rankOf.length; i++) {
      rankOf[i] = this.#rank(names.names[i]!, names.raw[i]!, fields);
      if (rankOf[i] !== noRank) decides = true;
    }
    this.#rankOf = rankOf;
    this.decides = decides;
  }

  /** Sets the level of each row that has one in its metadata, or in the labels of its stream. */
  readRows(
    from: number,
    to: number,
    stream: StreamLevel,
    levels: Uint8Array,
    foreign: ForeignLevels,
  ): void {
    for (let row = from; row < to; row++) {
      const pair = this.#bestPair(row);
      const rank = pair < 0 ? noRank : this.#rankOf[this.#names.ofPair[pair]!]!;
      if (rank === detectedRank) {
        levels[row] = this.#discovers ? this.#codeOf(pair) : this.#plainCodeOf(pair);
      } else if (stream.level !== 0) {
        levels[row] = stream.level;
        if (stream.level === levelInMetadata) foreign.setText(row, stream.levelText);
      } else if (rank === this.#severityRank) {
        levels[row] = severityCodeOf(this.#shortText(pair) ?? "");
      } else if (rank !== noRank) {
        const code = this.#codeOf(pair);
        levels[row] = code;
        if (code === levelInMetadata) foreign.setPair(row, pair);
      }
    }
  }

  #rank(name: string, raw: string, fields: readonly string[]): number {
    if (name === detectedLevelName) return detectedRank;
    if (!this.#discovers) return noRank;
    const at = fields.findIndex((field) => field === raw || field === name);
    if (at >= 0) return firstFieldRank + at;
    return name === severityNumber ? this.#severityRank : noRank;
  }

  /** The pair of a row that decides: the last one of the lowest rank; -1 for none. */
  #bestPair(row: number): number {
    const { metaStart, metaValueLength } = this.#push;
    let best = -1;
    let bestRank = noRank - 1;
    const end = metaStart[row + 1]!;
    for (let pair = metaStart[row]!; pair < end; pair++) {
      const rank = this.#rankOf[this.#names.ofPair[pair]!]!;
      if (rank > bestRank || metaValueLength[pair] === 0) continue;
      best = pair;
      bestRank = rank;
    }
    return best;
  }

  #codeOf(pair: number): number {
    const text = this.#shortText(pair);
    if (text === undefined) return levelInMetadata;
    const known = this.#memo?.get(text);
    if (known !== undefined) return known;
    const code = levelCodeOf(text);
    this.#memo ??= new Map();
    if (this.#memo.size < maxMemo) this.#memo.set(text, code);
    return code;
  }

  /** Without discovery nothing is normalised: only the exact names of the table have a code. */
  #plainCodeOf(pair: number): number {
    const code = levelNames.indexOf((this.#shortText(pair) ?? "") as (typeof levelNames)[number]);
    return code > 0 ? code : levelInMetadata;
  }

  /** The value of a pair when it is short enough to be a level. */
  #shortText(pair: number): string | undefined {
    const start = this.#push.metaValueStart[pair]!;
    const length = this.#push.metaValueLength[pair]!;
    if (length > maxLevelBytes) return undefined;
    let text = "";
    for (let i = start; i < start + length; i++) text += String.fromCharCode(this.#push.bytes[i]!);
    return text;
  }
}

/**
 * Levels outside the table, such as `notice`, that a label or other metadata gives to rows. They are stored as metadata
 * `detected_level`, which the push did not have.
 */
class ForeignLevels {
  readonly #push: RawPush;
  /** Value range of each row; length 0 when it has none. Allocated with the first one. */
  #start = none;
  #length = none;
  #rows = 0;
  /** Ranges of the texts that follow the bytes of the push and the name. */
  #texts: Map<string, { start: number; length: number }> | undefined;
  #end: number;

  constructor(push: RawPush) {
    this.#push = push;
    this.#end = push.bytes.length + nameBytes.length;
  }

  get isEmpty(): boolean {
    return this.#rows === 0;
  }

  /** The row has the level that a label spells. */
  setText(row: number, text: string): void {
    let range = this.#texts?.get(text);
    if (range === undefined) {
      range = { start: this.#end, length: Buffer.byteLength(text) };
      this.#texts ??= new Map();
      this.#texts.set(text, range);
      this.#end += range.length;
    }
    this.#set(row, range.start, range.length);
  }

  /** The row has the level that is the value of one of its pairs. */
  setPair(row: number, pair: number): void {
    this.#set(row, this.#push.metaValueStart[pair]!, this.#push.metaValueLength[pair]!);
  }

  /** Returns the push with these levels among its metadata: new pair columns, and the texts behind its bytes. */
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

  #extendedBytes(): Uint8Array {
    const bytes = new Uint8Array(this.#end + paddingBytes).subarray(0, this.#end);
    bytes.set(this.#push.bytes);
    bytes.set(nameBytes, this.#push.bytes.length);
    for (const [text, { start }] of this.#texts ?? []) bytes.set(encoder.encode(text), start);
    return bytes;
  }
}

const none = new Uint32Array(0);
const encoder = new TextEncoder();
const nameBytes = encoder.encode(detectedLevelName);

const unknownCode = levelNames.indexOf("unknown");

/** The code of a level that a label or metadata names; `levelInMetadata` for a text outside the table. */
export function levelCodeOf(text: string): number {
  if (text === "unknown") return unknownCode;
  const code = normaliseLevel(text);
  return code === 0 ? levelInMetadata : code;
}

/** Severity numbers of OpenTelemetry by fours: 1-4 trace ... 21-24 fatal. */
const severities = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

/** The code of an OpenTelemetry `severity_number`; a text that is no number counts as info. */
function severityCodeOf(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) return levelNames.indexOf("info");
  const name = severities[Math.ceil(Number(text) / 4) - 1];
  return name === undefined ? unknownCode : levelNames.indexOf(name);
}
