import { formatLabels, makeLabels } from "@skald/model";
import type { Grouping } from "../syntax/ast.js";
import { type KeyReader, KeyTable } from "./key-table.js";
import { errorDetailsLabel, errorLabel, labelsWithEmpty } from "./row/labels.js";
import { defaultMaxLineBytes } from "./row/line-builder.js";
import { labelState, type RowLabels, type StreamContext } from "./row/row-labels.js";
import { rowLabelNames } from "./stage/template-labels.js";
import type { PipelineOptions, Series, SeriesTable } from "./types.js";

/** Stands where a slot would, in front of the error texts of a key. */
const errorMark = -1;

/** Where the labels of a series are written down until somebody asks for them. */
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
  #labels!: RowLabels;
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
    this.#series[id] = made;
    return made;
  }

  /** Binds the table to the labels of rows; known keys are forgotten, series are not. */
  bind(labels: RowLabels): void {
    this.#labels = labels;
    this.#key = new KeyTable(this.#maxBytes);
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
    if (!this.#isLog && labels.error !== "" && !this.#asksForError) return this.#errorId();
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
      const state = labels.state[slot];
      const isTouched = state !== undefined && state !== labelState.untouched;
      if (isTouched || left.has(slot) || !labels.isMetadata(slot)) continue;
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
    const errors: Readonly<Record<string, string>> = {
      [errorLabel]: reader.text(),
      [errorDetailsLabel]: reader.text(),
    };
    return pairs.map(([name, value]) => [name, errors[name] || value] as const);
  }

  #makeAll(reader: KeyReader, { stream, nameOf }: Recorded): Series {
    const { names, values } = stream.labels;
    const all = new Map<string, readonly [value: string, origin: number]>();
    for (const [i, name] of names.entries()) {
      if (!this.#left.has(name)) all.set(name, [values[i]!, labelState.stream]);
    }
    reader.int();
    while (!reader.atEnd) {
      const part = reader.int();
      if (part === errorMark) {
        const kind = reader.text();
        const details = reader.text();
        if (kind !== "") all.set(errorLabel, [kind, labelState.parsed]);
        if (details !== "") all.set(errorDetailsLabel, [details, labelState.parsed]);
        continue;
      }
      const name = nameOf(part >> 3);
      const state = part & 7;
      if (state === labelState.deleted) all.delete(name);
      else all.set(name, [reader.value(), state]);
    }
    const of = (origin?: number) =>
      [...all].flatMap(([name, [value, own]]) =>
        origin === undefined || own === origin ? [[name, value] as const] : [],
      );
    if (!this.#isLog) return { labels: makeLabels(of()) };
    return {
      labels: labelsWithEmpty(of()),
      categories: {
        stream: labelsWithEmpty(of(labelState.stream)),
        structuredMetadata: labelsWithEmpty(of(labelState.metadata)),
        parsed: labelsWithEmpty(of(labelState.parsed)),
      },
    };
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
