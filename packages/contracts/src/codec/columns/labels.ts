import type { RowLabels } from "@skald/logql";
import type { Labels } from "@skald/model";
import {
  damaged,
  field,
  type MessageCodec,
  mapped,
  message,
  u32s,
} from "@skald/transport/protobuf";
import { areBelow, ascends, textList } from "./columns.js";

interface LabelTable {
  /** Every name and value once. */
  readonly texts: readonly string[];
  /** Distinct lists of names, one behind the other, and where each ends; names by place in `texts`. */
  readonly nameEnds: Uint32Array;
  readonly names: Uint32Array;
  /** Of each set its list of names, and the values to these by place in `texts`, one set behind the other. */
  readonly lists: Uint32Array;
  readonly values: Uint32Array;
}

/** Label sets: every text and every list of names is there once. */
export const labelSets: MessageCodec<readonly Labels[]> = mapped(
  message<LabelTable>({
    texts: field(1, textList),
    nameEnds: field(2, u32s),
    names: field(3, u32s),
    lists: field(4, u32s),
    values: field(5, u32s),
  }),
  tableOfLabels,
  labelsOfTable,
);

function tableOfLabels(sets: readonly Labels[]): LabelTable {
  const places = new Map<string, number>();
  const place = (text: string): number => {
    const known = places.get(text);
    if (known !== undefined) return known;
    places.set(text, places.size);
    return places.size - 1;
  };
  const names = new NameLists();
  const lists = Uint32Array.from(sets, (set) => names.placeOf(set.names));
  const values = new Uint32Array(sets.reduce((total, set) => total + set.values.length, 0));
  let at = 0;
  for (const set of sets) for (const value of set.values) values[at++] = place(value);
  let end = 0;
  return {
    nameEnds: Uint32Array.from(names.all, ({ length }) => (end += length)),
    names: Uint32Array.from(names.all.flat(), place),
    lists,
    values,
    texts: [...places.keys()],
  };
}

class NameLists {
  readonly all: (readonly string[])[] = [];
  readonly #places = new Map<string, number>();

  placeOf(names: readonly string[]): number {
    const text = names.join("\0");
    const known = this.#places.get(text);
    // Names with a zero byte may look like others.
    if (known !== undefined && isSame(this.all[known]!, names)) return known;
    this.#places.set(text, this.all.length);
    return this.all.push(names) - 1;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((one, i) => one === b[i]));
}

function labelsOfTable({ texts, nameEnds, names, lists, values }: LabelTable): Labels[] {
  if (!ascends(nameEnds) || (nameEnds[nameEnds.length - 1] ?? 0) !== names.length)
    throw damaged("the ends of lists of names are not those of the names");
  if (!areBelow(lists, nameEnds.length)) throw damaged("a label set has no names");
  if (!areBelow(names, texts.length) || !areBelow(values, texts.length))
    throw damaged("a label has no text");
  const known = Array.from(nameEnds, (end, i) =>
    Array.from(names.subarray(nameEnds[i - 1] ?? 0, end), (name) => texts[name]!),
  );
  let at = 0;
  const sets = new Array<Labels>(lists.length);
  for (let i = 0; i < sets.length; i++) {
    const own = known[lists[i]!]!;
    if (own.length > values.length - at) throw damaged("a label set lacks values");
    const texted = new Array<string>(own.length);
    for (let k = 0; k < texted.length; k++) texted[k] = texts[values[at++]!]!;
    sets[i] = { names: own, values: texted };
  }
  if (at !== values.length) throw damaged("values are of no label set");
  return sets;
}

interface WireRowLabels {
  readonly sets: readonly Labels[];
  readonly rows: Uint32Array;
}

/** Label sets with their labels by origin: those that are one object are there once, and are one object again. */
export const rowLabels: MessageCodec<readonly RowLabels[]> = mapped(
  message<WireRowLabels>({ sets: field(1, labelSets), rows: field(2, u32s) }, ({ sets, rows }) =>
    rows.length % 4 === 0 && areBelow(rows, sets.length)
      ? undefined
      : "labels by origin are not complete",
  ),
  (all): WireRowLabels => {
    const places = new Map<Labels, number>();
    const placeOf = (set: Labels): number => {
      const known = places.get(set);
      if (known !== undefined) return known;
      places.set(set, places.size);
      return places.size - 1;
    };
    const rows = new Uint32Array(4 * all.length);
    for (const [i, { labels, categories }] of all.entries()) {
      rows[4 * i] = placeOf(labels);
      rows[4 * i + 1] = placeOf(categories.stream);
      rows[4 * i + 2] = placeOf(categories.structuredMetadata);
      rows[4 * i + 3] = placeOf(categories.parsed);
    }
    return { sets: [...places.keys()], rows };
  },
  ({ sets, rows }): readonly RowLabels[] =>
    Array.from({ length: rows.length / 4 }, (_, i) => ({
      labels: sets[rows[4 * i]!]!,
      categories: {
        stream: sets[rows[4 * i + 1]!]!,
        structuredMetadata: sets[rows[4 * i + 2]!]!,
        parsed: sets[rows[4 * i + 3]!]!,
      },
    })),
);
