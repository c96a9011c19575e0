import { formatLabels, type Labels, makeLabels } from "@skald/model";
import type { Grouping } from "./ast.js";
import { errorDetailsLabel, errorLabel, labelsWithEmpty } from "./label-set.js";
import { labelState, type RowLabels } from "./label-set-row.js";
import type { PipelineOptions, Series, SeriesTable } from "./pipeline.js";
import { RowKey } from "./pipeline-row-key.js";
import { rowLabelNames } from "./stage/template-labels.js";

/**
 * Gives equal label sets equal ids. A row is known again by the bytes of its values; strings are made only when its
 * key is new. Several keys may lead to one series: labels can be set in another order.
 */
export class SeriesInterner implements SeriesTable {
  readonly #series: Series[] = [];
  readonly #byText = new Map<string, number>();
  readonly #isLog: boolean;
  readonly #grouping: Grouping | undefined;
  readonly #unwrapped: string | undefined;
  readonly #asksForError: boolean;
  #key = new RowKey();
  #labels!: RowLabels;
  /** Slots of the labels of `by`. */
  #groups: readonly number[] | undefined;
  /** Names that the series do not have. */
  #left: ReadonlySet<string> = new Set();
  #leftSlots = new Set<number>();

  constructor({ output, unwrap }: PipelineOptions) {
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
    return series;
  }

  /** Binds the table to the labels of rows; known keys are forgotten, series are not. */
  bind(labels: RowLabels): void {
    this.#labels = labels;
    this.#key = new RowKey();
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

  get groupsHaveError(): boolean {
    const grouping = this.#grouping;
    return (
      grouping?.without === false &&
      (grouping.labels.includes(errorLabel) || grouping.labels.includes(errorDetailsLabel))
    );
  }

  /** Series of the current row; `stream` is the number of its stream. */
  idOf(stream: number): number {
    const labels = this.#labels;
    if (!this.#isLog && labels.error !== "" && !this.#asksForError) return this.#errorId();
    const key = this.#key;
    key.begin();
    if (this.#groups === undefined) this.#writeAll(stream);
    else this.#writeGroups(this.#groups);
    const known = key.find();
    if (known >= 0) return known;
    const id = this.#intern(this.#build());
    key.add(id);
    return id;
  }

  #writeGroups(groups: readonly number[]): void {
    const labels = this.#labels;
    const key = this.#key;
    for (const slot of groups) {
      if (labels.find(slot)) key.putBytes(labels.foundBytes, labels.foundStart, labels.foundEnd);
      else key.putInt(0);
    }
    if (this.groupsHaveError) {
      key.putText(labels.error);
      key.putText(labels.errorDetails);
    }
  }

  #writeAll(stream: number): void {
    const labels = this.#labels;
    const key = this.#key;
    const left = this.#leftSlots;
    key.putInt(stream);
    for (const { slot } of labels.metadata?.columns ?? []) {
      const isTouched = labels.state[slot] !== undefined && labels.state[slot] !== 0;
      if (isTouched || left.has(slot) || !labels.isMetadata(slot)) continue;
      key.putInt(slot);
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
      key.putText(labels.error);
      key.putText(labels.errorDetails);
    }
  }

  #build(): Series {
    const all = this.#allLabels();
    if (this.#isLog) return { labels: labelsWithEmpty(all), categories: this.#categories() };
    const grouping = this.#grouping;
    if (grouping?.without === false) {
      const wanted = new Set(grouping.labels);
      return { labels: makeLabels(all.filter(([name]) => wanted.has(name))) };
    }
    return { labels: makeLabels(all.filter(([name]) => !this.#left.has(name))) };
  }

  /** Rows with an error fail the query: one series per kind is enough. */
  #errorId(): number {
    const kind = this.#labels.error;
    const known = this.#byText.get(`!${kind}`);
    if (known !== undefined) return known;
    const labels = makeLabels(this.#allLabels());
    const id = this.#series.push({ labels, error: { kind, labelsText: formatLabels(labels) } }) - 1;
    this.#byText.set(`!${kind}`, id);
    return id;
  }

  #allLabels(): readonly (readonly [string, string])[] {
    const labels = this.#labels;
    return rowLabelNames(labels).map((name) => {
      if (name === errorLabel && labels.error !== "") return [name, labels.error];
      if (name === errorDetailsLabel && labels.errorDetails !== "")
        return [name, labels.errorDetails];
      return [name, labels.text(labels.names.slotOf(name)) ?? ""];
    });
  }

  #categories(): NonNullable<Series["categories"]> {
    const labels = this.#labels;
    const pairs: readonly (readonly [string, string])[][] = [[], [], []];
    const [stream, structuredMetadata, parsed] = pairs as [P, P, P];
    for (const [name, value] of this.#allLabels()) {
      const slot = labels.names.slotOf(name);
      const isError =
        (name === errorLabel && labels.error !== "") ||
        (name === errorDetailsLabel && labels.errorDetails !== "");
      const origin = isError ? labelState.parsed : labels.originOf(slot);
      if (origin === labelState.stream) stream.push([name, value]);
      else if (origin === labelState.metadata) structuredMetadata.push([name, value]);
      else parsed.push([name, value]);
    }
    return {
      stream: labelsWithEmpty(stream),
      structuredMetadata: labelsWithEmpty(structuredMetadata),
      parsed: labelsWithEmpty(parsed),
    };
  }

  #intern(series: Series): number {
    const text = textOf(series);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const id = this.#series.push(series) - 1;
    this.#byText.set(text, id);
    return id;
  }
}

type P = (readonly [string, string])[];

/** Labels with equal texts but other origins are different series of a log query. */
function textOf({ labels, categories }: Series): string {
  if (categories === undefined) return formatLabels(labels);
  const of = ({ names, values }: Labels) => JSON.stringify([names, values]);
  return of(categories.stream) + of(categories.structuredMetadata) + of(categories.parsed);
}
