import type { InstantSample } from "@skald/contracts";
import { invalidArgument, type Labels, makeLabels } from "@skald/model";
import type { Rule } from "../rules/rule-group.js";
import { keyOf, pairsOf } from "./alerting-rule.js";

/** A sample to write. An undefined value ends its series. */
export interface RecordedSample {
  readonly labels: Labels;
  readonly value: number | undefined;
}

/** Makes series from the samples of an expression. */
export class RecordingRule {
  readonly rule: Rule;
  readonly #labels: readonly [string, string][];
  readonly #limit: number;
  /** Series of the last evaluation. */
  #series = new Map<string, Labels>();

  constructor(rule: Rule, labels: Readonly<Record<string, string>>, limit: number) {
    this.rule = rule;
    this.#labels = Object.entries(labels);
    this.#limit = limit;
  }

  /** Takes over the series of an earlier form of the rule. */
  adopt(other: RecordingRule): void {
    this.#series = other.#series;
  }

  /** The samples of one evaluation. Throws invalid_argument when two samples are of one series, and above the limit of the group. */
  update(samples: readonly InstantSample[]): RecordedSample[] {
    const series = new Map<string, Labels>();
    const made: RecordedSample[] = [];
    for (const { labels, value } of samples) {
      const named = makeLabels([
        ...pairsOf(labels),
        ...this.#labels,
        ["__name__", this.rule.record],
      ]);
      series.set(keyOf(named), named);
      made.push({ labels: named, value });
    }
    if (series.size < made.length)
      throw invalidArgument(
        "vector contains metrics with the same labelset after applying rule labels",
      );
    if (this.#limit > 0 && made.length > this.#limit)
      throw invalidArgument(`exceeded limit of ${this.#limit} with ${made.length} series`);
    for (const [key, labels] of this.#series) {
      if (!series.has(key)) made.push({ labels, value: undefined });
    }
    this.#series = series;
    return made;
  }
}
