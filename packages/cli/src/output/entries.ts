import { quote } from "@skald/model";

export type LabelSet = Readonly<Record<string, string>>;

/** A line of an answer. Lines of one stream share their object of labels. */
export interface Entry {
  readonly ns: bigint;
  readonly line: string;
  readonly labels: LabelSet;
  /** Structured metadata, where the answer keeps it apart from the labels. */
  readonly metadata?: LabelSet;
}

/** A stream as the API answers it. */
export interface AnswerStream {
  readonly stream: LabelSet;
  readonly values: readonly (readonly [ns: string, line: string, apart?: Apart])[];
}

/** What an answer with `categorize-labels` tells apart. */
interface Apart {
  readonly structuredMetadata?: LabelSet;
}

/** The lines of streams in one order of time; lines of one time stay in the order of the answer. */
export function entriesOf(streams: readonly AnswerStream[], isForward: boolean): Entry[] {
  const entries = streams.flatMap(({ stream, values }) =>
    values.map(([ns, line, apart]): Entry => {
      const metadata = apart?.structuredMetadata;
      const entry = { ns: BigInt(ns), line, labels: stream };
      return metadata === undefined ? entry : { ...entry, metadata };
    }),
  );
  const sign = isForward ? 1 : -1;
  return entries.sort((a, b) => (a.ns < b.ns ? -sign : a.ns > b.ns ? sign : 0));
}

/** Which labels an output shows. */
export interface LabelChoice {
  readonly isWithout: boolean;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Labels that all lines of an answer share stay with each line. */
  readonly keepsCommon: boolean;
}

/** Labels that all streams of an answer have with the same value; those that are asked for by name are not among them. */
export function commonLabels(sets: readonly LabelSet[], { include }: LabelChoice): LabelSet {
  const [first, ...others] = sets;
  if (first === undefined) return {};
  const common = Object.entries(first).filter(
    ([name, value]) => !include.includes(name) && others.every((set) => set[name] === value),
  );
  return Object.fromEntries(common);
}

/** The labels of a stream that are shown beside its lines. */
export function shownLabels(labels: LabelSet, common: LabelSet, choice: LabelChoice): LabelSet {
  const { include, exclude, keepsCommon } = choice;
  const shown = Object.entries(labels).filter(([name]) => {
    if (include.length > 0) return include.includes(name);
    if (exclude.includes(name)) return false;
    return keepsCommon || !Object.hasOwn(common, name);
  });
  return Object.fromEntries(shown);
}

/** `{a="b", c="d"}`, by names. */
export function labelText(labels: LabelSet): string {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${pairs.map(([name, value]) => `${name}=${quote(value)}`).join(", ")}}`;
}
