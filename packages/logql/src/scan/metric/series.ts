import { formatLabels, invalidArgument, type Labels } from "@skald/model";
import type { Grouping } from "../../syntax/ast.js";

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

/** The refusal of a query with more series than it may have. */
export function tooManySeries(limit: number): Error {
  return invalidArgument(
    `maximum number of series (${limit}) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()`,
  );
}

/** The warning of an answer that holds only the first series. */
export function partialSeriesWarning(limit: number): string {
  return `maximum number of series (${limit}) reached for a single query; returning partial results`;
}

/** The labels that a grouping leaves; without a grouping all. */
export function groupLabels(labels: Labels, grouping: Grouping | undefined): Labels {
  if (grouping === undefined) return labels;
  const names: string[] = [];
  const values: string[] = [];
  for (let i = 0; i < labels.names.length; i++) {
    const name = labels.names[i] as string;
    if (grouping.labels.includes(name) === grouping.without) continue;
    names.push(name);
    values.push(labels.values[i] as string);
  }
  return { names, values };
}

/** A text of the labels that a grouping leaves: equal for two label sets exactly when these are equal. */
export function groupKey(labels: Labels, grouping: Grouping | undefined): string {
  return formatLabels(groupLabels(labels, grouping));
}
