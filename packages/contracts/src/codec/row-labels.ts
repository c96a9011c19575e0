import type { RowLabels } from "@skald/logql";
import type { Labels } from "@skald/model";

/** Label sets of rows in columns: each list of names and each value is there once. */
export interface RowLabelColumns {
  readonly names: readonly (readonly string[])[];
  readonly values: readonly string[];
  /** Distinct label sets one behind the other: the place of its names, then those of its values. */
  readonly sets: Uint32Array;
  /** Four numbers for each: where all labels, and those of the stream, metadata and parsed, are in `sets`. */
  readonly rows: Uint32Array;
}

export function encodeRowLabels(labels: readonly RowLabels[]): RowLabelColumns {
  const writer = new SetWriter();
  const rows = new Uint32Array(4 * labels.length);
  for (const [i, { labels: all, categories }] of labels.entries()) {
    rows[4 * i] = writer.placeOf(all);
    rows[4 * i + 1] = writer.placeOf(categories.stream);
    rows[4 * i + 2] = writer.placeOf(categories.structuredMetadata);
    rows[4 * i + 3] = writer.placeOf(categories.parsed);
  }
  const { names, values, sets } = writer;
  return { names, values: [...values.keys()], sets: Uint32Array.from(sets), rows };
}

export function decodeRowLabels({ names, values, sets, rows }: RowLabelColumns): RowLabels[] {
  const known = new Map<number, Labels>();
  const setAt = (place: number): Labels => {
    let set = known.get(place);
    if (set === undefined) {
      const own = names[sets[place]!]!;
      set = { names: own, values: own.map((_, i) => values[sets[place + 1 + i]!]!) };
      known.set(place, set);
    }
    return set;
  };
  return Array.from({ length: rows.length / 4 }, (_, i) => ({
    labels: setAt(rows[4 * i]!),
    categories: {
      stream: setAt(rows[4 * i + 1]!),
      structuredMetadata: setAt(rows[4 * i + 2]!),
      parsed: setAt(rows[4 * i + 3]!),
    },
  }));
}

class SetWriter {
  readonly names: (readonly string[])[] = [];
  readonly values = new Map<string, number>();
  readonly sets: number[] = [];
  readonly #places = new Map<Labels, number>();
  readonly #placeOfNames = new Map<string, number>();

  /** Sets of one object are written once. */
  placeOf(labels: Labels): number {
    const known = this.#places.get(labels);
    if (known !== undefined) return known;
    const place = this.sets.length;
    this.#places.set(labels, place);
    this.sets.push(this.#namesAt(labels.names));
    for (const value of labels.values) {
      let at = this.values.get(value);
      if (at === undefined) {
        at = this.values.size;
        this.values.set(value, at);
      }
      this.sets.push(at);
    }
    return place;
  }

  #namesAt(names: readonly string[]): number {
    const text = names.join("\0");
    let at = this.#placeOfNames.get(text);
    if (at === undefined) {
      // No name and one empty name are the same text, but there is no empty name.
      at = this.names.push(names) - 1;
      this.#placeOfNames.set(text, at);
    }
    return at;
  }
}
