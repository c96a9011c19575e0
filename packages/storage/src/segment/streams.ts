import { internal, type Labels, type Matcher, quote } from "@skald/model";
import { type SectionReader, type SectionWriter, section } from "./index-sections.js";
import { type LabelColumn, matchLabels } from "./match-labels.js";

/** Turns the label sets of the streams into one column per name, sorted by name. */
export function labelColumns(streams: readonly Labels[]): LabelColumn[] {
  const byName = new Map<string, { streams: number[]; values: string[] }>();
  streams.forEach((labels, stream) => {
    for (let i = 0; i < labels.names.length; i++) {
      const name = labels.names[i]!;
      let column = byName.get(name);
      if (column === undefined) {
        column = { streams: [], values: [] };
        byName.set(name, column);
      }
      column.streams.push(stream);
      column.values.push(labels.values[i]!);
    }
  });
  return [...byName.keys()].sort().map((name) => {
    const column = byName.get(name)!;
    const values = [...new Set(column.values)].sort();
    const codeOf = new Map(values.map((value, code) => [value, code]));
    return {
      name,
      values,
      streams:
        column.streams.length === streams.length ? undefined : Uint32Array.from(column.streams),
      codes: Uint32Array.from(column.values, (value) => codeOf.get(value)!),
    };
  });
}

export function writeStreams(sections: SectionWriter, columns: readonly LabelColumn[]): void {
  sections.texts(
    section.labelNames,
    columns.map((column) => column.name),
  );
  columns.forEach((column, ordinal) => {
    sections.texts(section.labelValues, column.values, ordinal);
    if (column.streams !== undefined) {
      sections.numbers(section.labelStreams, column.streams, ordinal);
    }
    sections.codes(section.labelCodes, column.codes, ordinal);
  });
}

/**
 * The streams of an opened segment, by their labels. A column of labels is decoded when a matcher first needs it;
 * texts and label sets are put together when they are first asked for.
 */
export class SegmentStreams {
  readonly count: number;
  readonly names: readonly string[];
  readonly #sections: SectionReader;
  readonly #columns = new Map<string, LabelColumn>();
  readonly #ordinals: ReadonlyMap<string, number>;
  readonly #texts: (string | undefined)[] = [];
  readonly #labels: (Labels | undefined)[] = [];
  #rows: StreamRows | undefined;

  constructor(sections: SectionReader, count: number) {
    this.#sections = sections;
    this.count = count;
    this.names = sections.texts(section.labelNames);
    this.#ordinals = new Map(this.names.map((name, ordinal) => [name, ordinal]));
  }

  /** The column of a label; undefined when no stream has it. */
  column(name: string): LabelColumn | undefined {
    const known = this.#columns.get(name);
    if (known !== undefined) return known;
    const ordinal = this.#ordinals.get(name);
    if (ordinal === undefined) return undefined;
    const column = this.#readColumn(name, ordinal);
    this.#columns.set(name, column);
    return column;
  }

  match(matchers: readonly Matcher[]): Uint32Array {
    return matchLabels(this.count, (name) => this.column(name), matchers);
  }

  labels(stream: number): Labels {
    const known = this.#labels[stream];
    if (known !== undefined) return known;
    const rows = this.#streamRows();
    const names: string[] = [];
    const values: string[] = [];
    for (let i = rows.starts[stream]!; i < rows.starts[stream + 1]!; i++) {
      const column = rows.columns[rows.ordinals[i]!]!;
      names.push(column.name);
      values.push(column.values[rows.codes[i]!]!);
    }
    const labels = { names, values };
    this.#labels[stream] = labels;
    return labels;
  }

  /** The same text as `formatLabels` prints, from pairs that are quoted once per distinct value. */
  text(stream: number): string {
    const known = this.#texts[stream];
    if (known !== undefined) return known;
    const rows = this.#streamRows();
    const to = rows.starts[stream + 1]!;
    let text = "{";
    for (let i = rows.starts[stream]!; i < to; i++) {
      if (text.length > 1) text += ", ";
      text += rows.pair(rows.ordinals[i]!, rows.codes[i]!);
    }
    text += "}";
    this.#texts[stream] = text;
    return text;
  }

  #readColumn(name: string, ordinal: number): LabelColumn {
    const sections = this.#sections;
    const values = sections.texts(section.labelValues, ordinal);
    const codes = sections.codes(section.labelCodes, ordinal, values.length);
    const streams = sections.has(section.labelStreams, ordinal)
      ? Uint32Array.from(sections.numbers(section.labelStreams, ordinal))
      : undefined;
    if (codes.length !== (streams === undefined ? this.count : streams.length)) {
      throw internal(`index has ${codes.length} codes for the label ${name}`);
    }
    if (streams !== undefined) checkAscending(streams, this.count);
    return { name, values, streams, codes };
  }

  #streamRows(): StreamRows {
    this.#rows ??= rowsOf(
      this.count,
      this.names.map((name) => this.column(name)!),
    );
    return this.#rows;
  }
}

/** The label pairs stream by stream: those of stream s are `starts[s] .. starts[s+1])`. */
interface StreamRows {
  readonly columns: readonly LabelColumn[];
  readonly starts: Uint32Array;
  readonly ordinals: Uint32Array;
  readonly codes: Uint32Array;
  pair(ordinal: number, code: number): string;
}

function rowsOf(count: number, columns: readonly LabelColumn[]): StreamRows {
  const starts = new Uint32Array(count + 1);
  forEachPair(columns, (stream) => {
    starts[stream + 1]!++;
  });
  for (let s = 0; s < count; s++) starts[s + 1]! += starts[s]!;
  const next = starts.slice();
  const ordinals = new Uint32Array(starts[count]!);
  const codes = new Uint32Array(ordinals.length);
  // Columns come in the order of their names, and so do the pairs of each stream.
  forEachPair(columns, (stream, ordinal, code) => {
    const at = next[stream]!;
    next[stream] = at + 1;
    ordinals[at] = ordinal;
    codes[at] = code;
  });
  const pairs = columns.map((): (string | undefined)[] => []);
  const pair = (ordinal: number, code: number): string => {
    const ofName = pairs[ordinal]!;
    const column = columns[ordinal]!;
    ofName[code] ??= `${column.name}=${quote(column.values[code]!)}`;
    return ofName[code]!;
  };
  return { columns, starts, ordinals, codes, pair };
}

function forEachPair(
  columns: readonly LabelColumn[],
  visit: (stream: number, ordinal: number, code: number) => void,
): void {
  columns.forEach(({ streams, codes }, ordinal) => {
    for (let i = 0; i < codes.length; i++) {
      visit(streams === undefined ? i : streams[i]!, ordinal, codes[i]!);
    }
  });
}

function checkAscending(streams: Uint32Array, limit: number): void {
  let least = 0;
  for (const stream of streams) {
    if (stream < least || stream >= limit)
      throw internal(`index has stream ${stream} out of order`);
    least = stream + 1;
  }
}
