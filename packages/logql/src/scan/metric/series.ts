import {
  detectedLevelName,
  emptyLabels,
  formatLabels,
  type Labels,
  makeLabels,
} from "@skald/model";
import { tooManySeries } from "../../plan/limits.js";
import type { Grouping } from "../../syntax/ast.js";
import type { StreamLabels } from "../block-selection.js";

/** The series of a leaf: label sets numbered from 0 in order of appearance. */
export class SeriesIndex {
  readonly labels: Labels[] = [];
  readonly #byText = new Map<string, number>();
  readonly #maxSeries: number;

  constructor(maxSeries: number) {
    this.#maxSeries = maxSeries;
  }

  find(labels: Labels): number {
    const text = formatLabels(labels);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    if (this.labels.length >= this.#maxSeries) throw tooManySeries(this.#maxSeries);
    this.#byText.set(text, this.labels.length);
    return this.labels.push(labels) - 1;
  }
}

/** Series of rows whose labels are those of their stream; of those only what the grouping asks for is looked at. */
export class StreamSeries {
  readonly #grouping: Grouping | undefined;
  readonly #index: SeriesIndex;
  #source: StreamLabels | undefined;
  #labels: (stream: number) => Labels = () => emptyLabels;
  /** Series by the labels of a stream that the grouping may leave. */
  #known = new Map<Labels, number>();
  #levels = new Map<Labels, Map<string, number>>();

  constructor(grouping: Grouping | undefined, index: SeriesIndex) {
    this.#grouping = grouping;
    this.#index = index;
  }

  find(source: StreamLabels, stream: number): number {
    this.#open(source);
    const labels = this.#labels(stream);
    const known = this.#known.get(labels);
    if (known !== undefined) return known;
    const series = this.#index.find(groupLabels(labels, this.#grouping));
    this.#known.set(labels, series);
    return series;
  }

  /** Whether a stream has a label of the name of levels itself: then its rows are told apart in another way. */
  hasLevelLabel(source: StreamLabels, stream: number): boolean {
    this.#open(source);
    return this.#labels(stream).names.includes(detectedLevelName);
  }

  /** The series of rows of a stream that have a level. */
  findLevel(source: StreamLabels, stream: number, level: string): number {
    this.#open(source);
    const labels = this.#labels(stream);
    let known = this.#levels.get(labels);
    if (known === undefined) {
      known = new Map();
      this.#levels.set(labels, known);
    }
    let series = known.get(level);
    if (series === undefined) {
      const pairs = labels.names.map((name, i) => [name, labels.values[i]!] as const);
      const own = makeLabels([...pairs, [detectedLevelName, level]]);
      series = this.#index.find(groupLabels(own, this.#grouping));
      known.set(level, series);
    }
    return series;
  }

  #open(source: StreamLabels): void {
    if (source === this.#source) return;
    const grouping = this.#grouping;
    this.#source = source;
    this.#labels = (grouping?.without === false && source.only?.(grouping.labels)) || source;
    this.#known = new Map();
    this.#levels = new Map();
  }
}

/**
 * True when structured metadata of these names can change the series of a row. A name that a stream label has
 * already becomes `<name>_extracted`.
 */
export function metadataMatters(names: readonly string[], grouping: Grouping | undefined): boolean {
  if (names.length === 0) return false;
  if (grouping === undefined || grouping.without || names.includes("__error__")) return true;
  return names.some(
    (name) => grouping.labels.includes(name) || grouping.labels.includes(`${name}_extracted`),
  );
}

/** True when of all metadata of these names only the level can. */
export function onlyLevelMatters(
  names: readonly string[],
  grouping: Grouping | undefined,
): boolean {
  if (!names.includes(detectedLevelName)) return false;
  if (grouping?.labels.includes(`${detectedLevelName}_extracted`) === true) return false;
  const others = names.filter((name) => name !== detectedLevelName);
  return !metadataMatters(others, grouping);
}

/** The labels that a grouping leaves; without a grouping all. */
export function groupLabels(labels: Labels, grouping: Grouping | undefined): Labels {
  if (grouping === undefined) return labels;
  const names: string[] = [];
  const values: string[] = [];
  for (let i = 0; i < labels.names.length; i++) {
    const name = labels.names[i]!;
    if (grouping.labels.includes(name) === grouping.without) continue;
    names.push(name);
    values.push(labels.values[i]!);
  }
  return { names, values };
}

/** A text of the labels that a grouping leaves: equal for two label sets exactly when these are equal. */
export function groupKey(labels: Labels, grouping: Grouping | undefined): string {
  return formatLabels(groupLabels(labels, grouping));
}
