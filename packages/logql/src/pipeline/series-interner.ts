import { emptyLabels, formatLabels, type Labels, makeLabels } from "@skald/model";
import type { Grouping } from "../syntax/ast.js";
import type { PipelineOptions, Series, SeriesTable } from "./pipeline.js";
import { type KeyReader, KeyTable } from "./row/key-table.js";
import { defaultMaxLineBytes } from "./row/row.js";
import {
  type CurrentLabels,
  errorDetailsLabel,
  errorLabel,
  isParserError,
  labelState,
  type StreamContext,
} from "./row/row-labels.js";
import { rowLabelNames } from "./stage/format.js";

/** Stands where a slot would, in front of the error texts of a key. */
const errorMark = -1;

/** Where the labels of a series are written until `get` asks for them. */
interface Recorded {
  readonly key: KeyTable;
  readonly entry: number;
  readonly stream: StreamContext;
  readonly nameOf: (slot: number) => string;
}

/**
 * Gives equal label sets equal ids. A row is known again by the bytes of its values: origin, name and value of each
 * label that is not the stream's own. Labels are made of that key only when they are asked for.
 */
export class SeriesInterner implements SeriesTable {
  readonly #series: (Series | Recorded)[] = [];
  readonly #errors = new Map<string, number>();
  readonly #isLog: boolean;
  readonly #grouping: Grouping | undefined;
  readonly #unwrapped: string | undefined;
  readonly #asksForError: boolean;
  /** Series of each key of the current table. */
  #ids: number[] = [];
  #key = new KeyTable();
  #recent = new RecentSeries();
  #labels!: CurrentLabels;
  /** Slots of the labels of `by`. */
  #groups: readonly number[] | undefined;
  /** Names that no series has. */
  #left: ReadonlySet<string> = new Set();
  #leftSlots = new Set<number>();

  readonly #maxBytes: number;

  /** Label sets that take more than `maxBytes` bytes together throw invalid_argument. */
  constructor({ output, unwrap }: PipelineOptions, maxBytes = defaultMaxLineBytes) {
    this.#maxBytes = maxBytes;
    this.#isLog = output.kind === "log";
    this.#grouping = output.kind === "metric" ? output.grouping : undefined;
    this.#unwrapped = this.#isLog ? undefined : unwrap?.label;
    const grouping = this.#grouping;
    this.#asksForError = grouping?.without === false && grouping.labels.includes(errorLabel);
  }

  get count(): number {
    return this.#series.length;
  }

  get(id: number): Series {
    const series = this.#series[id];
    if (series === undefined) throw new RangeError(`no series ${id}`);
    if ("labels" in series) return series;
    const made = this.#make(series);
    // A scan of a leaf asks once for the series of an id.
    if (this.#isLog) this.#series[id] = made;
    return made;
  }

  /** Binds the table to the labels of rows; known keys are forgotten, series are not. */
  bind(labels: CurrentLabels): void {
    this.#labels = labels;
    this.#key = new KeyTable(this.#maxBytes);
    this.#recent = new RecentSeries();
    this.#ids = [];
    const grouping = this.#grouping;
    if (grouping?.without === false) {
      this.#groups = grouping.labels.map((name) => labels.names.slotOf(name));
    } else {
      const unwrapped = this.#unwrapped === undefined ? [] : [this.#unwrapped];
      this.#left = new Set([...(grouping?.labels ?? []), ...unwrapped]);
      this.#leftSlots = new Set([...this.#left].map((name) => labels.names.slotOf(name)));
    }
  }

  /** Slots of `by`; undefined when all labels but some make the series. */
  get groups(): readonly number[] | undefined {
    return this.#groups;
  }

  /** Series of the current row of a stream. */
  idOf(stream: StreamContext): number {
    const labels = this.#labels;
    if (!this.#isLog && labels.error !== "") {
      if (!this.#asksForError || !isParserError(labels.error)) return this.#errorId();
    }
    const groups = this.#groups;
    const recent = this.#recent;
    if (groups === undefined || !recent.isUseful) return this.#idOfKey(stream);
    if (!recent.look(labels, groups, stream)) return this.#idOfKey(stream);
    if (recent.id < 0) recent.note(this.#idOfKey(stream));
    return recent.id;
  }

  #idOfKey(stream: StreamContext): number {
    const labels = this.#labels;
    const key = this.#key;
    key.begin();
    if (this.#groups === undefined) this.#writeAll(stream);
    else this.#writeGroups(this.#groups);
    const known = key.find();
    if (known >= 0) return this.#ids[known]!;
    const { names } = labels;
    const nameOf = (slot: number) => names.nameOf(slot);
    const id = this.#series.push({ key, entry: key.add(), stream, nameOf }) - 1;
    this.#ids.push(id);
    return id;
  }

  #writeGroups(groups: readonly number[]): void {
    const labels = this.#labels;
    const key = this.#key;
    for (let i = 0; i < groups.length; i++) {
      if (labels.find(groups[i]!)) {
        key.putBytes(labels.foundBytes, labels.foundStart, labels.foundEnd);
      } else key.putInt(0);
    }
    if (labels.error !== "" || labels.errorDetails !== "") {
      key.putText(labels.error);
      key.putText(labels.errorDetails);
    }
  }

  #writeAll(stream: StreamContext): void {
    const labels = this.#labels;
    const key = this.#key;
    const left = this.#leftSlots;
    key.putInt(stream.id);
    for (const { slot } of labels.metadata?.columns ?? []) {
      if (left.has(slot) || !labels.isMetadata(slot)) continue;
      key.putInt((slot << 3) | labelState.metadata);
      key.putBytes(labels.foundBytes, labels.foundStart, labels.foundEnd);
    }
    for (let i = 0; i < labels.touchedCount; i++) {
      const slot = labels.touched[i]!;
      if (left.has(slot)) continue;
      const state = labels.state[slot]!;
      key.putInt((slot << 3) | state);
      if (state !== labelState.deleted) {
        key.putBytes(labels.bytes[slot]!, labels.start[slot]!, labels.end[slot]!);
      }
    }
    if (labels.error !== "" || labels.errorDetails !== "") {
      key.putInt(errorMark);
      key.putText(labels.error);
      key.putText(labels.errorDetails);
    }
  }

  #make(recorded: Recorded): Series {
    const reader = recorded.key.read(recorded.entry);
    return this.#groups === undefined
      ? this.#makeAll(reader, recorded)
      : { labels: makeLabels(this.#readGroups(reader)) };
  }

  #readGroups(reader: KeyReader): readonly (readonly [string, string])[] {
    const names = this.#grouping?.labels ?? [];
    const pairs = names.map((name) => [name, reader.value()] as const);
    if (reader.atEnd) return pairs;
    const errors = new Map([
      [errorLabel, reader.text()],
      [errorDetailsLabel, reader.text()],
    ]);
    return pairs.map(([name, value]) => [name, errors.get(name) || value] as const);
  }

  #makeAll(reader: KeyReader, { stream, nameOf }: Recorded): Series {
    const { kept, changed } = this.#readAll(reader, stream.labels, nameOf);
    if (!this.#isLog) return { labels: makeLabels([...pairsOf(kept), ...changed.map(pairOf)]) };
    const of = (origin: number) => changed.filter(({ state }) => state === origin).map(pairOf);
    const ofStream = of(labelState.stream);
    return {
      labels: withPairs(kept, changed.map(pairOf)),
      categories: {
        stream: withPairs(kept, ofStream),
        structuredMetadata: withPairs(emptyLabels, of(labelState.metadata)),
        parsed: withPairs(emptyLabels, of(labelState.parsed)),
      },
    };
  }

  /** The labels that a series has of its stream, and the others. */
  #readAll(
    reader: KeyReader,
    ofStream: Labels,
    nameOf: (slot: number) => string,
  ): { readonly kept: Labels; readonly changed: readonly Changed[] } {
    const changed = new Map<string, Changed>();
    const gone = new Set(this.#left);
    const set = (name: string, value: string, state: number) => {
      gone.add(name);
      changed.set(name, { name, value, state });
    };
    reader.int();
    while (!reader.atEnd) {
      const part = reader.int();
      if (part === errorMark) {
        const kind = reader.text();
        const details = reader.text();
        if (kind !== "") set(errorLabel, kind, labelState.parsed);
        if (details !== "") set(errorDetailsLabel, details, labelState.parsed);
        continue;
      }
      const name = nameOf(part >> 3);
      const state = part & 7;
      if (state === labelState.deleted) {
        gone.add(name);
        changed.delete(name);
      } else set(name, reader.value(), state);
    }
    return { kept: withoutNames(ofStream, gone), changed: [...changed.values()] };
  }

  /** Rows with an error fail the query: one series per kind is enough, with the labels of the first row. */
  #errorId(): number {
    const labels = this.#labels;
    const kind = labels.error;
    const known = this.#errors.get(kind);
    if (known !== undefined) return known;
    const all = makeLabels(
      rowLabelNames(labels).map((name) => {
        if (name === errorLabel) return [name, kind];
        const isDetails = name === errorDetailsLabel && labels.errorDetails !== "";
        const value = isDetails ? labels.errorDetails : labels.text(labels.names.slotOf(name));
        return [name, value ?? ""];
      }),
    );
    const series = { labels: all, error: { kind, labelsText: formatLabels(all) } };
    const id = this.#series.push(series) - 1;
    this.#errors.set(kind, id);
    return id;
  }
}

/** Places; each has the series of the rows that came last with its hash. */
const recentPlaces = 256;
/** Numbers of a place: the stream, the shape, eight bytes of values, and the series + 1. */
const placeNumbers = 5;
const maxShapeGroups = 8;
/** In four bits of a shape: the label is the stream's, it is deleted, or it has a value of `code - 1` bytes. */
const shapeCodes = { ofStream: 0, value: 1, deleted: 15 } as const;
const wordBytes = 4;
const maxValueBytes = 2 * wordBytes;
/** When this many looks are done, at least half of them must have found something; else looking ends. */
const triedLooks = 1024;

/**
 * Series of `by` by the few bytes in which rows of a stream differ, for most rows have values that rows before them had: status
 * codes, methods, levels. What the stream itself gives to a series is not looked at, so grouping by its labels costs little.
 */
class RecentSeries {
  readonly #places = new Int32Array(recentPlaces * placeNumbers);
  #stream = 0;
  #shape = 0;
  #low = 0;
  #high = 0;
  #place = 0;
  #looks = 0;
  #hits = 0;
  /** Series of the last look, -1 when it is not known. */
  id = -1;
  /** False once most values were new or long: then looking costs more than it saves. */
  isUseful = true;

  /** Looks for the series of the current row; false for rows with long values, many groups or errors. */
  look(labels: CurrentLabels, groups: readonly number[], { id: stream }: StreamContext): boolean {
    if (++this.#looks === triedLooks) {
      this.isUseful = this.#hits >= triedLooks / 2;
      this.#looks = 0;
      this.#hits = 0;
    }
    if (labels.error !== "" || labels.errorDetails !== "") return false;
    if (groups.length > maxShapeGroups) return false;
    const { metadata } = labels;
    let shape = 0;
    let low = 0;
    let high = 0;
    let used = 0;
    for (let i = 0; i < groups.length; i++) {
      const slot = groups[i]!;
      const state = labels.state[slot] ?? labelState.untouched;
      let code: number = shapeCodes.ofStream;
      if (state === labelState.deleted) code = shapeCodes.deleted;
      else if (state !== labelState.untouched || metadata?.columnOf(slot) !== undefined) {
        if (labels.find(slot)) {
          const { foundBytes, foundStart, foundEnd } = labels;
          const length = foundEnd - foundStart;
          if (used + length > maxValueBytes) return false;
          code = shapeCodes.value + length;
          for (let at = foundStart; at < foundEnd; at++) {
            const byte = foundBytes[at]!;
            if (used < wordBytes) low |= byte << (used << 3);
            else high |= byte << ((used - wordBytes) << 3);
            used++;
          }
        }
      }
      shape = (shape << 4) | code;
    }
    this.#stream = stream;
    this.#shape = shape;
    this.#low = low;
    this.#high = high;
    this.#find();
    return true;
  }

  /** Notes the series of the last look. */
  note(id: number): void {
    const places = this.#places;
    const at = this.#place;
    places[at] = this.#stream;
    places[at + 1] = this.#shape;
    places[at + 2] = this.#low;
    places[at + 3] = this.#high;
    places[at + 4] = id + 1;
    this.id = id;
  }

  #find(): void {
    const places = this.#places;
    const low = Math.imul(this.#low, 0x2c1b3c6d) ^ Math.imul(this.#high, 0x297a2d39);
    const hash = Math.imul(low ^ (low >>> 15) ^ this.#shape ^ (this.#stream << 9), 0x85ebca6b);
    const at = (hash >>> 24) * placeNumbers;
    const isHit =
      places[at] === this.#stream &&
      places[at + 1] === this.#shape &&
      places[at + 2] === this.#low &&
      places[at + 3] === this.#high;
    this.#place = at;
    if (isHit) this.#hits++;
    this.id = isHit ? places[at + 4]! - 1 : -1;
  }
}

/** A label of a row that is not its stream's own, and where it comes from. */
interface Changed {
  readonly name: string;
  readonly value: string;
  readonly state: number;
}

function pairOf({ name, value }: Changed): readonly [string, string] {
  return [name, value];
}

function pairsOf({ names, values }: Labels): (readonly [string, string])[] {
  return names.map((name, i) => [name, values[i]!]);
}

/** The same object where none of the names is there. */
function withoutNames(labels: Labels, gone: ReadonlySet<string>): Labels {
  if (!labels.names.some((name) => gone.has(name))) return labels;
  const pairs = pairsOf(labels).filter(([name]) => !gone.has(name));
  return { names: pairs.map(([name]) => name), values: pairs.map(([, value]) => value) };
}

/** The labels with pairs of other names; the same object where there are none. Empty values are kept. */
function withPairs(labels: Labels, pairs: readonly (readonly [string, string])[]): Labels {
  if (pairs.length === 0) return labels;
  const names: string[] = [];
  const values: string[] = [];
  let at = 0;
  const take = (before?: string) => {
    while (at < labels.names.length && (before === undefined || labels.names[at]! < before)) {
      names.push(labels.names[at]!);
      values.push(labels.values[at++]!);
    }
  };
  for (const [name, value] of pairs.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    take(name);
    names.push(name);
    values.push(value);
  }
  take();
  return { names, values };
}
