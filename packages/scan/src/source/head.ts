import {
  type Block,
  detectedLevelName,
  type Labels,
  type LevelCounts,
  labelValue,
  type Matcher,
  parseStreamText,
} from "@skald/model";
import {
  type HeadView,
  hashPair,
  hashText,
  hashValues,
  type LabelTable,
  matchLabels,
  openHeadBlock,
  readTexts,
  type StreamColumn,
} from "@skald/storage";
import type { Source } from "./source.js";

/** A head as a source; it knows only the streams that the ingester selected. */
export function openHead(ref: HeadView): Source {
  const streams = new HeadStreams(ref);
  const blocks = ref.blocks.map(openHeadBlock);
  return {
    id: ref.id,
    kind: "head",
    baseNs: blocks[0]?.baseNs ?? 0n,
    blockCount: blocks.length,
    streams,
    refuse: () => false,
    levels: (block, run) => countLevels(blocks[block] as Block, run),
    slices: () => undefined,
    metadataNames: (block) => (blocks[block] as Block).metadataNames(),
    runs: (block) => (blocks[block] as Block).runs,
    block: (block) => blocks[block] as Block,
    readPages: () => undefined,
    storedBytes: () => 0,
  };
}

/** Counts the rows of a run in memory; undefined where a level is not one of the table. */
function countLevels(block: Block, run: number): LevelCounts | undefined {
  const column = block.metadata(detectedLevelName);
  if (column?.kind !== "dictionary") return undefined;
  const { codes, dictionary } = column;
  const { offsets } = block.lines();
  const { rowStart } = block.runs;
  const rows = dictionary.map(() => 0);
  const lineBytes = dictionary.map(() => 0);
  for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
    const level = codes[row]!;
    rows[level]! += 1;
    lineBytes[level]! += offsets[row + 1]! - offsets[row]!;
  }
  return { levels: dictionary, rows, lineBytes };
}

/** The selected streams of a head. Columns are made of their texts when they are first asked for. */
class HeadStreams implements LabelTable {
  readonly count: number;
  made = 0;
  readonly #ref: HeadView;
  readonly #columns = new Map<string, StreamColumn | undefined>();
  #texts: readonly string[] | undefined;
  #names: readonly string[] | undefined;
  #hashes: Uint32Array | undefined;
  /** By stream, its place in the selection plus one. */
  #places: Uint32Array | undefined;

  constructor(ref: HeadView) {
    this.#ref = ref;
    let count = 0;
    for (const stream of ref.streams) if (stream >= count) count = stream + 1;
    this.count = count;
  }

  get names(): readonly string[] {
    this.#names ??= this.#findNames();
    return this.#names;
  }

  get hashes(): Uint32Array {
    this.#hashes ??= this.#hash();
    return this.#hashes;
  }

  match(matchers: readonly Matcher[]): Uint32Array {
    const { streams, matchers: asked } = this.#ref;
    // Most often a scan asks for what the ingester has selected.
    if (matchers.length === 0 || JSON.stringify(matchers) === JSON.stringify(asked)) {
      return streams.slice().sort();
    }
    const matched = matchLabels(this.count, (name) => this.column(name), matchers);
    return matched.filter((stream) => this.#place(stream) >= 0);
  }

  labels(stream: number): Labels {
    this.made++;
    return parseStreamText(this.text(stream));
  }

  text(stream: number): string {
    return this.#all()[this.#place(stream)] ?? "{}";
  }

  column(name: string): StreamColumn | undefined {
    if (!this.#columns.has(name)) this.#columns.set(name, this.#makeColumn(name));
    return this.#columns.get(name);
  }

  #findNames(): string[] {
    const names = new Set<string>();
    for (const text of this.#all()) {
      forEachLabel(text, (name) => {
        names.add(name);
        return true;
      });
    }
    return [...names].sort();
  }

  #makeColumn(wanted: string): StreamColumn | undefined {
    const codeOfValue = new Map<string, number>();
    const values: string[] = [];
    const codes = new Uint32Array(this.count);
    this.#all().forEach((text, place) => {
      forEachLabel(text, (name, value) => {
        if (name !== wanted) return name < wanted;
        const code = codeOfValue.get(value) ?? values.push(value);
        codeOfValue.set(value, code);
        codes[this.#ref.streams[place]!] = code;
        return false;
      });
    });
    if (values.length === 0) return undefined;
    const encoded = bytesOf(values);
    return {
      name: wanted,
      valueCount: values.length,
      value: (code) => values[code]!,
      ...encoded,
      find: (value) => codeOfValue.get(value) ?? 0,
      codes,
      streams: undefined,
      hashes: hashValues(encoded.bytes, encoded.offsets),
    };
  }

  #all(): readonly string[] {
    this.#texts ??= readTexts(this.#ref.texts);
    return this.#texts;
  }

  #hash(): Uint32Array {
    const hashes = new Uint32Array(2 * this.count);
    for (const name of this.names) {
      const { codes, hashes: ofValues } = this.column(name)!;
      for (const lane of [0, 1] as const) {
        const ofName = hashText(name, lane);
        for (const stream of this.#ref.streams) {
          const code = codes[stream]!;
          if (code === 0) continue;
          hashes[2 * stream + lane]! += hashPair(ofName, ofValues[2 * code - 2 + lane]!);
        }
      }
    }
    return hashes;
  }

  /** Place of a stream in the selection, or -1. */
  #place(stream: number): number {
    if (this.#places === undefined) {
      this.#places = new Uint32Array(this.count);
      for (let place = 0; place < this.#ref.streams.length; place++) {
        this.#places[this.#ref.streams[place]!] = place + 1;
      }
    }
    return (this.#places[stream] ?? 0) - 1;
  }
}

const encoder = new TextEncoder();

/** Texts as UTF-8, one behind the other. */
function bytesOf(texts: readonly string[]) {
  // A code unit takes three bytes at most.
  const room = texts.reduce((sum, { length }) => sum + 3 * length, 0);
  const bytes = new Uint8Array(room);
  const offsets = new Uint32Array(texts.length + 1);
  let end = 0;
  texts.forEach((text, i) => {
    end += encoder.encodeInto(text, bytes.subarray(end)).written;
    offsets[i + 1] = end;
  });
  return { bytes: bytes.slice(0, end), offsets };
}

/**
 * Calls back for each label of a canonical label text, in order, without a label set being made; stops when that returns
 * false.
 */
export function forEachLabel(
  text: string,
  visit: (name: string, value: string) => boolean | undefined,
): void {
  // What has an escape is read by the parser that knows them all.
  if (text.includes("\\")) {
    const labels = parseStreamText(text);
    for (const name of labels.names) if (visit(name, labelValue(labels, name)) === false) return;
    return;
  }
  for (let at = 1; at < text.length - 1; ) {
    const equals = text.indexOf('="', at);
    if (equals < 0) return;
    const end = text.indexOf('"', equals + 2);
    if (visit(text.slice(at, equals), text.slice(equals + 2, end)) === false) return;
    at = end + '", '.length;
  }
}
