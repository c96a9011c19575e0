import type { Labels } from "@skald/model";
import { type SectionWriter, section } from "./index-sections.js";

/** One label name over the streams of a segment: value `codes[i]` belongs to stream `streams[i]`. */
export interface LabelColumn {
  readonly name: string;
  /** Sorted, no value twice. */
  readonly values: readonly string[];
  /** Streams that have the name, ascending; undefined when all have it. */
  readonly streams: Uint32Array | undefined;
  readonly codes: Uint32Array;
}

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
