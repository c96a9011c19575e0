import type { Block, BytesColumn, MetadataColumn } from "@skald/model";

/**
 * The same sealed block, with columns of metadata that are read when a row is looked at: a scan names the columns of
 * every block, and then its filters most often leave no row of it.
 */
export function withLazyMetadata(block: Block): Block {
  const columns = new Map<string, MetadataColumn>();
  let names: ReadonlySet<string> | undefined;
  return {
    baseNs: block.baseNs,
    rowCount: block.rowCount,
    runs: block.runs,
    timestamps: block.timestamps,
    lines: block.lines,
    metadataNames: block.metadataNames,
    metadata(name) {
      const known = columns.get(name);
      if (known !== undefined) return known;
      names ??= new Set(block.metadataNames());
      if (!names.has(name)) return undefined;
      const column = new LazyColumn(() => block.metadata(name) as MetadataColumn & BytesColumn);
      columns.set(name, column);
      return column;
    },
  };
}

class LazyColumn implements BytesColumn {
  readonly kind = "bytes";
  readonly #read: () => BytesColumn;
  #column: BytesColumn | undefined;

  constructor(read: () => BytesColumn) {
    this.#read = read;
  }

  get bytes(): Uint8Array {
    this.#column ??= this.#read();
    return this.#column.bytes;
  }

  get offsets(): Uint32Array {
    this.#column ??= this.#read();
    return this.#column.offsets;
  }
}
