import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import {
  type Block,
  type BytesColumn,
  labelsToObject,
  type MetadataColumn,
  notFound,
  paddingBytes,
  parseStreamText,
} from "@skald/model";
import { type MemoryStore, openSegment, parseSegmentKey } from "@skald/storage";
import type { LokiFiles } from "../files.js";

export const storeNames = [
  "gzip",
  "lz4",
  "flate",
  "zstd-compacted",
  "snappy-legacy",
  "none-legacy",
];

/** The files of a store, by name; a test may change them. */
export class TestStore implements LokiFiles {
  readonly files: Map<string, Uint8Array>;

  constructor(files: Map<string, Uint8Array>) {
    this.files = files;
  }

  list(folder: string): Promise<string[]> {
    return Promise.resolve([...this.files.keys()].filter((name) => name.startsWith(folder)).sort());
  }

  read(name: string): Promise<Uint8Array> {
    const bytes = this.files.get(name);
    return bytes === undefined
      ? Promise.reject(notFound(`${name} does not exist`))
      : Promise.resolve(bytes);
  }

  open(name: string): Promise<Uint8Array> {
    return this.read(name);
  }
}

const blockBytes = 512;

/** A store of testdata/. Its archive is read as POSIX says of ustar: a header of 512 bytes, then the file in whole blocks. */
export function openStore(name: string): TestStore {
  const tar = gunzipSync(readFileSync(new URL(`../../testdata/${name}.tar.gz`, import.meta.url)));
  const text = (from: number, length: number): string =>
    tar.toString("utf8", from, from + length).replace(/\0.*$/s, "");
  const files = new Map<string, Uint8Array>();
  for (let at = 0; at < tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12), 8);
    const path = [text(at + 345, 155), text(at, 100)].filter((part) => part !== "").join("/");
    const start = at + blockBytes;
    if (text(at + 156, 1) === "0")
      files.set(path.replace(/^\.\//, ""), tar.subarray(start, start + size));
    at = start + Math.ceil(size / blockBytes) * blockBytes;
  }
  return new TestStore(files);
}

/** A row as text: labels, time, line and metadata. */
export function rowText(
  labels: object,
  ns: bigint | string,
  line: string,
  metadata: object,
): string {
  const sorted = (pairs: object) => Object.entries(pairs).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(labels), String(ns), line, sorted(metadata)]);
}

interface Answers {
  readonly streams: readonly {
    readonly stream: Record<string, string>;
    readonly values: readonly [string, string, { readonly structuredMetadata?: object }][];
  }[];
}

/** Every row that Loki answered from a store, sorted. */
export function answersOf(name: string): string[] {
  const file = new URL(`../../testdata/${name}.answers.json.gz`, import.meta.url);
  const { streams } = JSON.parse(gunzipSync(readFileSync(file)).toString()) as Answers;
  return streams
    .flatMap(({ stream, values }) =>
      values.map(([ns, line, more]) => rowText(stream, ns, line, more.structuredMetadata ?? {})),
    )
    .sort();
}

/** Every row of the segments of a store, sorted. */
export async function rowsIn(store: MemoryStore): Promise<string[]> {
  const rows: string[] = [];
  const { signal } = new AbortController();
  for await (const { key } of store.list("tenant=", { signal })) {
    const { tenant, id } = parseSegmentKey(key)!;
    const bytes = Buffer.concat([await store.get(key, { signal }), Buffer.alloc(paddingBytes)]);
    const sizeBytes = bytes.length - paddingBytes;
    const read = (offset: number, length: number): Uint8Array =>
      bytes.subarray(offset, offset + length);
    const segment = openSegment({ kind: "sync", name: key, sizeBytes, read }, { tenant, id });
    for (let b = 0; b < segment.blockCount; b++) {
      const block = segment.block(b);
      rows.push(
        ...rowsOfBlock(block, (stream) => labelsToObject(parseStreamText(segment.text(stream)))),
      );
    }
  }
  return rows.sort();
}

function rowsOfBlock(block: Block, labelsOf: (stream: number) => object): string[] {
  const lines = block.lines();
  const times = block.timestamps();
  const columns = block.metadataNames().map((name) => [name, block.metadata(name)!] as const);
  const rows: string[] = [];
  for (let run = 0; run < block.runs.count; run++) {
    const labels = labelsOf(block.runs.stream[run]!);
    for (let row = block.runs.rowStart[run]!; row < block.runs.rowStart[run + 1]!; row++) {
      const metadata = columns.map(([name, column]) => [name, valueAt(column, row)]);
      const present = Object.fromEntries(metadata.filter(([, value]) => value !== ""));
      rows.push(rowText(labels, block.baseNs + BigInt(times[row]!), textAt(lines, row), present));
    }
  }
  return rows;
}

function valueAt(column: MetadataColumn, row: number): string {
  return column.kind === "dictionary"
    ? textAt(column.dictionary, column.codes[row]!)
    : textAt(column, row);
}

function textAt({ bytes, offsets }: BytesColumn, row: number): string {
  return Buffer.from(bytes.subarray(offsets[row], offsets[row + 1])).toString();
}
