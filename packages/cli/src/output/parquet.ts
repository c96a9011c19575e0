import type { ByteWriter, ParquetWriter } from "hyparquet-writer";
import type { Entry } from "./entries.js";

/** Lines as a Parquet file with the columns of the server's: `timestamp` in ns, `labels`, `line`. */
export class ParquetLines {
  readonly #file: ParquetWriter;
  readonly #kept: ByteWriter | undefined;

  private constructor(file: ParquetWriter, kept: ByteWriter | undefined) {
    this.#file = file;
    this.#kept = kept;
  }

  /** Without a path the bytes are kept, for `finish`. */
  static async open(path?: string): Promise<ParquetLines> {
    const { ByteWriter, fileWriter, ParquetWriter } = await import("hyparquet-writer");
    const { lineSchema } = await import("@skald/frontend/parquet");
    const kept = path === undefined ? new ByteWriter() : undefined;
    const writer = kept ?? fileWriter(path!);
    return new ParquetLines(new ParquetWriter({ writer, schema: lineSchema() }), kept);
  }

  /** Adds a row group. */
  async add(entries: readonly Pick<Entry, "ns" | "labels" | "line">[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#file.write({
      columnData: [
        {
          name: "timestamp",
          data: BigInt64Array.from(entries, ({ ns }) => ns),
          encoding: "DELTA_BINARY_PACKED",
        },
        { name: "labels", data: entries.map(({ labels }) => labels) },
        { name: "line", data: entries.map(({ line }) => line) },
      ],
    });
  }

  /** Ends the file. The bytes of one without a path. */
  async finish(): Promise<Uint8Array> {
    await this.#file.finish();
    return this.#kept?.getBytes() ?? new Uint8Array(0);
  }
}
