import type { Segment } from "../segment/segment.js";
import { type FieldLayout, maxFieldColumns, noFields } from "../segment/write/fields.js";

/** What fields become columns. */
export interface FieldChoice {
  /** Share of the bytes of the lines that the columns may take. */
  readonly share: number;
  /** How often queries asked for a field, by name. */
  readonly asked: ReadonlyMap<string, number>;
}

export const noChoice: FieldChoice = { share: 0, asked: new Map() };

/**
 * Chooses the fields of lines that a merged segment keeps as columns, from a sample of the lines: those that are asked for, and
 * those in most rows for each byte that they take, as far as the share of the bytes of the lines goes.
 */
export function chooseFields(
  segments: readonly Segment[],
  { share, asked }: FieldChoice,
): FieldLayout {
  if (share <= 0) return noFields;
  const sample = new FieldSample();
  let lineBytes = 0;
  let blocks = 0;
  for (const segment of segments) {
    sampleSegment(segment, Math.max(1, Math.floor(sampledBlocks / segments.length)), sample);
    blocks += segment.blockCount;
    for (let block = 0; block < segment.blockCount; block++)
      lineBytes += segment.header(block).lineBytes;
  }
  const maxBytes = lineBytes * share;
  return { names: sample.choose({ lineBytes, blocks, maxBytes }, asked), maxBytes };
}

/** Blocks of all inputs that are looked at, and rows of each run in such a block. */
const sampledBlocks = 96;
const sampledRows = 24;
/** A longer line is not looked at. */
const maxLineBytes = 16 * 1024;

function sampleSegment(segment: Segment, blocks: number, sample: FieldSample): void {
  const step = Math.max(1, Math.ceil(segment.blockCount / blocks));
  for (let number = 0; number < segment.blockCount; number += step) {
    const { runs, lines } = segment.block(number);
    const { bytes, offsets } = lines();
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let run = 0; run < runs.count; run++) {
      const from = runs.rowStart[run]!;
      const to = runs.rowStart[run + 1]!;
      const stride = Math.max(1, Math.ceil((to - from) / sampledRows));
      for (let row = from; row < to; row += stride) {
        const end = Math.min(offsets[row + 1]!, offsets[row]! + maxLineBytes);
        sample.add(text.toString("latin1", offsets[row], end), stride);
      }
    }
  }
}

/** What is known of a name from the sampled lines. */
interface SampledField {
  /** Sampled lines with the field, and those whose value no column takes. */
  rows: number;
  odd: number;
  bytes: number;
  readonly values: Set<string>;
}

/** Distinct names and values that a sample tells apart. */
const maxNames = 4096;
const maxValues = 256;
/** Fewer values compress to some bits each. */
const fewValues = 24;
/** A field in a smaller share of the lines of all streams is no column. */
const minShare = 1 / 200;
/** Nor is one of whose values more are for the parser alone: its column would make these rows irregular. */
const maxOddShare = 1 / 100;
/** Header and place of a page. */
const pageBytes = 64;

class FieldSample {
  readonly #fields = new Map<string, SampledField>();
  #lineBytes = 0;
  #lines = 0;

  /** Adds a line that stands for `weight` lines. */
  add(line: string, weight: number): void {
    this.#lines += weight;
    this.#lineBytes += line.length * weight;
    const fields = this.#fields;
    for (const [name, value, isOdd] of line.startsWith("{")
      ? jsonFields(line)
      : logfmtFields(line)) {
      let field = fields.get(name);
      if (field === undefined) {
        if (fields.size >= maxNames) continue;
        field = { rows: 0, odd: 0, bytes: 0, values: new Set() };
        fields.set(name, field);
      }
      field.rows += weight;
      if (isOdd) field.odd += weight;
      field.bytes += value.length * weight;
      if (field.values.size < maxValues) field.values.add(value);
    }
  }

  choose(
    all: { lineBytes: number; blocks: number; maxBytes: number },
    asked: FieldChoice["asked"],
  ): string[] {
    const scale = all.lineBytes / Math.max(1, this.#lineBytes);
    const perPage = all.blocks * pageBytes;
    const costs = [...this.#fields].flatMap(([name, field]) => {
      const isRare = field.rows < this.#lines * minShare;
      if (isRare || field.odd > field.rows * maxOddShare) return [];
      const cost = perPage + scale * costOf(field);
      const worth = ((1 + (asked.get(name) ?? 0)) * field.rows) / cost;
      return [{ name, cost, worth }];
    });
    let left = all.maxBytes;
    const names: string[] = [];
    for (const { name, cost } of costs.sort((a, b) => b.worth - a.worth)) {
      if (names.length === maxFieldColumns) break;
      if (cost > left) continue;
      left -= cost;
      names.push(name);
    }
    return names.sort();
  }
}

/** About what a column takes: few values compress to some bits each, others to a good part of their length. */
function costOf({ rows, bytes, values: { size } }: SampledField): number {
  if (size === 1) return rows * 0.03;
  if (size < fewValues) return rows * 0.22 * Math.log2(size + 1);
  return 0.5 * rows + 0.45 * bytes;
}

/** A name, its value, and whether a column cannot take it. */
type FoundField = readonly [name: string, value: string, isOdd: boolean];

const nameForm = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Deeper members are seldom asked for. */
const maxDepth = 3;
const maxFound = 128;

/** What `| json` finds under plain names; empty for what is no object. */
function jsonFields(line: string): FoundField[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return [];
  }
  const found: FoundField[] = [];
  const walk = (members: object, prefix: string, depth: number): void => {
    for (const [key, value] of Object.entries(members)) {
      if (!nameForm.test(key) || found.length === maxFound) continue;
      const name = prefix + key;
      if (typeof value === "object") {
        if (value !== null && !Array.isArray(value) && depth < maxDepth)
          walk(value, `${name}_`, depth + 1);
      } else found.push([name, String(value), isOdd(String(value))]);
    }
  };
  walk(parsed as object, "", 0);
  return found;
}

/** What `| logfmt` finds, about. */
function logfmtFields(line: string): FoundField[] {
  const found: FoundField[] = [];
  for (const [, name, value] of line.matchAll(
    /(?:^| )([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|[^ "]+)/g,
  )) {
    if (found.length === maxFound) break;
    const text = value!.startsWith('"') ? value!.slice(1, -1) : value!;
    if (text !== "") found.push([name!, text, isOdd(text)]);
  }
  return found;
}

/** Values that are empty, long, have escapes or bytes beyond ASCII. */
function isOdd(value: string): boolean {
  return value === "" || value.length > 256 || /[^\x20-\x7e]|["\\]/.test(value);
}
