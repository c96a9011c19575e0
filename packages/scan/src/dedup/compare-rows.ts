import { crc32 } from "node:zlib";
import type { Block, BytesColumn, MetadataColumn } from "@skald/model";
import type { Source } from "../source/source.js";

/** Decoded blocks kept per source: rows are compared in the order of streams, so the next ones are mostly near. */
const maxBlocks = 4;

/** Blocks of a source, each with its columns once they were asked for; the last few stay decoded. */
export class RecentBlocks {
  readonly #source: Source;
  readonly #recent = new Map<number, Block>();

  constructor(source: Source) {
    this.#source = source;
  }

  block(number: number): Block {
    const known = this.#recent.get(number);
    if (known !== undefined) return known;
    if (this.#recent.size >= maxBlocks) {
      const [oldest] = this.#recent.keys();
      this.#recent.delete(oldest as number);
    }
    const block = this.#source.block(number);
    this.#recent.set(number, block);
    return block;
  }
}

/** True when line and metadata of two rows are equal. */
export function compareRows(a: Block, rowA: number, b: Block, rowB: number): boolean {
  if (!isSameValue(a.lines(), rowA, b.lines(), rowB)) return false;
  for (const name of new Set([...a.metadataNames(), ...b.metadataNames()])) {
    if (metadataText(a.metadata(name), rowA) !== metadataText(b.metadata(name), rowB)) return false;
  }
  return true;
}

/** Equal for rows that are equal in line and metadata, whatever other rows their blocks have. */
export function hashRow(block: Block, row: number): number {
  let hash = crc32(valueAt(block.lines(), row));
  for (const name of [...block.metadataNames()].sort()) {
    const value = metadataText(block.metadata(name), row);
    if (value !== "") hash = crc32(`${name}\n${value}`, hash);
  }
  return hash;
}

/** Values that are compared byte by byte first, before a call of the system's comparison is worth it. */
const firstBytes = 32;

function isSameValue(a: BytesColumn, rowA: number, b: BytesColumn, rowB: number): boolean {
  const from = a.offsets[rowA]!;
  const other = b.offsets[rowB]!;
  const length = a.offsets[rowA + 1]! - from;
  if (b.offsets[rowB + 1]! - other !== length) return false;
  const first = Math.min(length, firstBytes);
  for (let i = 0; i < first; i++) if (a.bytes[from + i] !== b.bytes[other + i]) return false;
  if (length === first) return true;
  return Buffer.compare(valueAt(a, rowA), valueAt(b, rowB)) === 0;
}

function valueAt({ bytes, offsets }: BytesColumn, row: number): Uint8Array {
  return bytes.subarray(offsets[row], offsets[row + 1]);
}

/** Bytes as latin1: only equality matters. */
function metadataText(column: MetadataColumn | undefined, row: number): string {
  if (column === undefined) return "";
  if (column.kind === "dictionary") {
    return Buffer.from(column.dictionary[column.codes[row] as number] ?? "").toString("latin1");
  }
  const value = valueAt(column, row);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1");
}
