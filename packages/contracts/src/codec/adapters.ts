import {
  joinLines,
  type LabelFilter,
  linesOf,
  type MatrixResult,
  type PlanNode,
  type VectorResult,
} from "@skald/logql";
import type { Labels } from "@skald/model";
import { damaged } from "@skald/transport/protobuf";
import { areBelow, endAt, withPadding } from "./columns.js";
import type { MessageName, Raw, Types } from "./types.js";

interface Adapter<Inside, Wire> {
  toWire(value: Inside): Wire;
  fromWire(wire: Wire): Inside;
}

/** Messages that have another form inside than in the schema. `fromWire` gets what passed the check of the message. */
export const adapters = {
  TextList: { toWire: listOfTexts, fromWire: textsOfList },
  LabelSets: { toWire: tableOfLabels, fromWire: labelsOfTable },
  RowLabels: { toWire: tableOfRowLabels, fromWire: rowLabelsOfTable },
  U32Lists: listsOf<Uint32Array>((length) => new Uint32Array(length)),
  F64Lists: listsOf<Float64Array>((length) => new Float64Array(length)),
  // What is behind the last value stays behind.
  BytesColumn: {
    toWire: ({ bytes, offsets }) => ({ bytes: bytes.subarray(0, offsets.at(-1) ?? 0), offsets }),
    fromWire: ({ bytes, offsets }) => {
      if ((offsets[0] ?? 0) !== 0 || !endAt(offsets, bytes.length))
        throw damaged("the offsets of a column are not those of its bytes");
      return { bytes: withPadding(bytes), offsets };
    },
  },
  LabelFilter: treeOf<LabelFilter>({ and: ["left", "right"], or: ["left", "right"] }),
  PlanTree: treeOf<PlanNode>({
    vector_aggregation: ["inner"],
    label_replace: ["inner"],
    binary: ["left", "right"],
  }),
  LogExpr: { toWire: (log) => log, fromWire: (log) => ({ kind: "log", ...log }) },
  ScanPlan: {
    toWire: (plan) => ("kind" in plan ? plan : { kind: "leaf", ...plan }),
    fromWire: (plan) => {
      if (plan.kind === "log") return plan;
      const { kind: _, ...leaf } = plan;
      return leaf;
    },
  },
  SegmentRef: { toWire: (ref) => ref, fromWire: (ref) => ({ kind: "segment", ...ref }) },
  Selector: only("matchers"),
  Selectors: only("selectors"),
  Actors: only("names"),
  StreamsAnswer: only("tenants"),
  LabelsAnswer: only("tenants"),
  ExplainAnswer: only("scans"),
  ChangesAnswer: only("spans"),
  DeletesAnswer: only("filters"),
  RuleGroupsAnswer: only("groups"),
  Outcome: {
    toWire: ({ partial, stats, streams }) => {
      const found = { kind: "mode" in partial ? "metric" : "log", ...partial };
      return { stats, streams, found: found as Raw<"Outcome">["found"] };
    },
    fromWire: ({ found: { kind: _, ...partial }, stats, streams }) => ({ partial, stats, streams }),
  },
  Matrix: {
    toWire: ({ points, series, warnings }) => ({
      points,
      labels: series.map(({ labels }) => labels),
      at: series.map(({ at }) => at),
      values: series.map(({ values }) => values),
      warnings,
    }),
    fromWire: ({ points, labels, at, values, warnings }): Omit<MatrixResult, "kind"> => ({
      points,
      series: labels.map((one, i) => ({ labels: one, at: at[i]!, values: values[i]! })),
      warnings,
    }),
  },
  Vector: {
    toWire: ({ atNs, samples, warnings }) => ({
      atNs,
      labels: samples.map(({ labels }) => labels),
      values: Float64Array.from(samples, ({ value }) => value),
      warnings,
    }),
    fromWire: ({ atNs, labels, values, warnings }): Omit<VectorResult, "kind"> => ({
      atNs,
      samples: labels.map((one, i) => ({ labels: one, value: values[i]! })),
      warnings,
    }),
  },
  Streams: {
    toWire: ({ lines, ...rows }) => ({ ...rows, lines: joinLines(lines) }),
    fromWire: ({ lines, ...rows }) => ({ ...rows, lines: linesOf(lines) }),
  },
  TailRows: {
    toWire: ({ dropped, ...rows }) => ({
      ...rows,
      droppedAt: BigInt64Array.from(dropped, ({ timestampNs }) => timestampNs),
      droppedLabels: dropped.map(({ labels }) => labels),
    }),
    fromWire: ({ rows, droppedAt, droppedLabels, unnamed }) => ({
      ...(rows === undefined ? {} : { rows: { kind: "streams", ...rows } }),
      dropped: droppedLabels.map((labels, i) => ({ timestampNs: droppedAt[i]!, labels })),
      ...(unnamed === undefined ? {} : { unnamed }),
    }),
  },
  LinePattern: {
    toWire: ({ samples, ...rest }) => ({
      ...rest,
      times: Float64Array.from(samples, ([time]) => time),
      counts: Float64Array.from(samples, ([, count]) => count),
    }),
    fromWire: ({ times, counts, ...rest }) => ({
      ...rest,
      samples: Array.from(times, (time, i) => [time, counts[i]!] as const),
    }),
  },
} satisfies { readonly [N in keyof Types]?: Adapter<Types[N], Raw<N>> };

type Loose<T> = { readonly [K in keyof T]: T[K] | undefined };
type KeysOf<T> = T extends unknown ? keyof T : never;
/** What of a message and its type inside do not fit together: never. */
type Mismatch<N extends keyof Types & MessageName> = [Raw<N>] extends [Types[N]]
  ? [Types[N]] extends [Loose<Raw<N>>]
    ? [KeysOf<Types[N]>, KeysOf<Raw<N>>] extends [KeysOf<Raw<N>>, KeysOf<Types[N]>]
      ? never
      : N
    : N
  : N;
type Mismatches = {
  [N in Exclude<keyof Types, keyof typeof adapters> & MessageName]: Mismatch<N>;
}[Exclude<keyof Types, keyof typeof adapters> & MessageName];
/**
 * Does not compile where a type and its message in proto/ have different fields; the error names them.
 *
 * @public
 */
export type SchemaFits = Assert<Mismatches>;
type Assert<T extends never> = T;

/** A message that has one field is that field inside. */
function only<Key extends string>(key: Key) {
  return {
    toWire: <T>(value: T) => ({ [key]: value }) as { readonly [K in Key]: T },
    fromWire: <T>(wire: { readonly [K in Key]: T }) => wire[key],
  };
}

/** All texts are one stretch of bytes, because one long text is read at once. */
function listOfTexts(texts: readonly string[]): Raw<"TextList"> {
  const joined = texts.join("");
  const bytes = Buffer.from(joined);
  // In ASCII a letter is a byte.
  const lengthOf =
    bytes.length === joined.length
      ? (text: string) => text.length
      : (text: string) => Buffer.byteLength(text);
  let end = 0;
  return { bytes, ends: Uint32Array.from(texts, (text) => (end += lengthOf(text))) };
}

function textsOfList({ bytes, ends }: Raw<"TextList">): string[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!endAt(ends, all.length)) throw damaged("the ends of texts are not those of their bytes");
  const joined = all.toString("utf8");
  const cut =
    joined.length === all.length
      ? (from: number, to: number) => joined.slice(from, to)
      : (from: number, to: number) => all.toString("utf8", from, to);
  const texts = new Array<string>(ends.length);
  for (let i = 0; i < ends.length; i++) texts[i] = cut(ends[i - 1] ?? 0, ends[i]!);
  return texts;
}

/** Every text and every list of names is in the table once. */
function tableOfLabels(sets: readonly Labels[]): Raw<"LabelSets"> {
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

function labelsOfTable({ texts, nameEnds, names, lists, values }: Raw<"LabelSets">): Labels[] {
  if (!endAt(nameEnds, names.length))
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

/** Label sets that are one object are in the table once, and are one object again. */
function tableOfRowLabels(all: Types["RowLabels"]): Raw<"RowLabels"> {
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
}

function rowLabelsOfTable({ sets, rows }: Raw<"RowLabels">): Types["RowLabels"] {
  if (rows.length % 4 !== 0 || !areBelow(rows, sets.length))
    throw damaged("labels by origin are not complete");
  return Array.from({ length: rows.length / 4 }, (_, i) => ({
    labels: sets[rows[4 * i]!]!,
    categories: {
      stream: sets[rows[4 * i + 1]!]!,
      structuredMetadata: sets[rows[4 * i + 2]!]!,
      parsed: sets[rows[4 * i + 3]!]!,
    },
  }));
}

interface Lists<Numbers> {
  readonly ends: Uint32Array;
  readonly numbers: Numbers;
}

function listsOf<Numbers extends Uint32Array | Float64Array>(make: (length: number) => Numbers) {
  return {
    toWire: (lists: readonly Numbers[]): Lists<Numbers> => {
      let end = 0;
      const ends = Uint32Array.from(lists, ({ length }) => (end += length));
      const numbers = make(end);
      for (const [i, list] of lists.entries()) numbers.set(list, ends[i - 1] ?? 0);
      return { ends, numbers };
    },
    fromWire: ({ ends, numbers }: Lists<Numbers>): readonly Numbers[] => {
      if (!endAt(ends, numbers.length))
        throw damaged("the ends of lists are not those of their numbers");
      return Array.from(ends, (end, i) => numbers.subarray(ends[i - 1] ?? 0, end) as Numbers);
    },
  };
}

/**
 * A tree as the list of its nodes, each behind the nodes below it, so that a deep tree is no deep message. `below` names the
 * properties that have nodes, in order, for the kinds that have any.
 */
function treeOf<Node extends { readonly kind: string }>(
  below: Readonly<Partial<Record<Node["kind"], readonly string[]>>>,
) {
  const namesOf = (one: unknown): readonly string[] =>
    below[(one as Node).kind as Node["kind"]] ?? [];
  return {
    // The messages of nodes have no fields for the nodes below.
    toWire: (root: Node): never => {
      const nodes: unknown[] = [];
      const open: unknown[] = [root];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        nodes.push(next);
        for (const name of namesOf(next)) open.push((next as Record<string, unknown>)[name]);
      }
      return { nodes: nodes.reverse() } as never;
    },
    fromWire: ({ nodes }: { readonly nodes: readonly unknown[] }): Node => {
      const done: unknown[] = [];
      for (const one of nodes) {
        const names = namesOf(one);
        if (names.length > done.length) throw damaged("a tree lacks nodes");
        const children = done.splice(done.length - names.length);
        const added = Object.fromEntries(names.map((name, i) => [name, children[i]]));
        done.push(names.length === 0 ? one : { ...(one as object), ...added });
      }
      if (done.length !== 1) throw damaged("a tree does not have one root");
      return done[0] as Node;
    },
  };
}
