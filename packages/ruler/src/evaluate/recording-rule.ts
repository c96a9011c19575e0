import type { InstantSample } from "@skald/contracts";
import { invalidArgument, makeLabels } from "@skald/model";
import type { Rule } from "../rules/rule-group.js";
import { keyOf, pairsOf, type RecordedSample, SeriesEnds } from "./series-ends.js";

/** Makes series from the samples of an expression. */
export class RecordingRule {
  readonly rule: Rule;
  readonly #labels: readonly [string, string][];
  readonly #limit: number;
  readonly #ends = new SeriesEnds();

  constructor(rule: Rule, labels: Readonly<Record<string, string>>, limit: number) {
    this.rule = rule;
    this.#labels = Object.entries(labels);
    this.#limit = limit;
  }

  /** Takes over the series of an earlier form of the rule. */
  adopt(other: RecordingRule): void {
    this.#ends.adopt(other.#ends);
  }

  /** The samples of one evaluation. Throws invalid_argument when two samples are of one series, and above the limit of the group. */
  update(samples: readonly InstantSample[]): RecordedSample[] {
    const series = new Set<string>();
    const made: RecordedSample[] = [];
    for (const { labels, value } of samples) {
      const named = makeLabels([
        ...pairsOf(labels),
        ...this.#labels,
        ["__name__", this.rule.record],
      ]);
      series.add(keyOf(named));
      made.push({ labels: named, value });
    }
    if (series.size < made.length)
      throw invalidArgument(
        "vector contains metrics with the same labelset after applying rule labels",
      );
    if (this.#limit > 0 && made.length > this.#limit)
      throw invalidArgument(`exceeded limit of ${this.#limit} with ${made.length} series`);
    return this.#ends.after(made);
  }

  /** The ends of all series, for a rule that is no more. */
  endSamples(): RecordedSample[] {
    return this.#ends.after([]);
  }
}
