import type { Labels } from "@skald/model";

/** A sample to write. An undefined value ends its series. */
export interface RecordedSample {
  readonly labels: Labels;
  readonly value: number | undefined;
}

/** Ends the series of a rule that its last evaluation had and the next one lacks, so that nobody reads them as still there. */
export class SeriesEnds {
  #series: ReadonlyMap<string, Labels> = new Map();

  /** Takes over the series of an earlier form of the rule. */
  adopt(other: SeriesEnds): void {
    this.#series = other.#series;
  }

  /** The samples of an evaluation and the ends of the series that it lacks. */
  after(samples: readonly RecordedSample[]): RecordedSample[] {
    const series = new Map(samples.map(({ labels }) => [keyOf(labels), labels]));
    const made = [...samples];
    for (const [key, labels] of this.#series) {
      if (!series.has(key)) made.push({ labels, value: undefined });
    }
    this.#series = series;
    return made;
  }
}

export function pairsOf({ names, values }: Labels): [string, string][] {
  return names.map((name, i) => [name, values[i] as string]);
}

export function keyOf({ names, values }: Labels): string {
  return JSON.stringify([names, values]);
}
