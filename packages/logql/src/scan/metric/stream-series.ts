import type { Grouping } from "../../syntax/ast.js";
import type { StreamLabels } from "./metric-scan.js";
import { groupLabels, type SeriesIndex } from "./series.js";

/** Series of rows whose labels are those of their stream, by stream number. */
export class StreamSeries {
  readonly #grouping: Grouping | undefined;
  readonly #index: SeriesIndex;
  #source: StreamLabels | undefined;
  /** Series by stream number. */
  #known: number[] = [];

  constructor(grouping: Grouping | undefined, index: SeriesIndex) {
    this.#grouping = grouping;
    this.#index = index;
  }

  find(source: StreamLabels, stream: number): number {
    if (source !== this.#source) {
      this.#source = source;
      this.#known = [];
    }
    const known = this.#known[stream];
    if (known !== undefined) return known;
    const series = this.#index.find(groupLabels(source(stream), this.#grouping));
    this.#known[stream] = series;
    return series;
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
