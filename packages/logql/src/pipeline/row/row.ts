import { grown, type RowSelection } from "@skald/kernels";
import { type Block, type BytesColumn, type Labels, paddingBytes } from "@skald/model";
import { type Budget, tooMuchMemory } from "../../plan/budget.js";
import type { LabelFilter } from "../../syntax/ast.js";
import { readText } from "./bytes.js";
import type { CurrentLabels } from "./row-labels.js";

/** The row that the stages of a run work on, one after the other. */
export interface RowState {
  readonly labels: CurrentLabels;
  readonly line: LineSource;
  /** Where templates count what they make. */
  readonly budget: Budget;
  /** Place of the row among the selected rows of its block. */
  readonly position: number;
  /** ns since the epoch */
  timestampNs(): bigint;
  nowNs(): bigint;
  /** Calls back for each block before its rows are run. */
  beforeRows(prepare: (rows: BlockRows) => void): void;
}

/** The rows of a block that the first stage is going to see, with their stored lines. */
export interface BlockRows {
  readonly block: Block;
  readonly lines: BytesColumn;
  readonly selection: Readonly<RowSelection>;
  readonly streamLabels: (stream: number) => Labels;
}

/** Runs one stage on the current row; false drops the row. */
export type RowStage = () => boolean;

/** A stage that is checked and prepared; gives a closure for one run. */
export type PreparedStage = (row: RowState, context: StageContext) => RowStage;

export interface StageContext {
  /** What later stages and the output use of what this stage may set. */
  readonly demand: Demand;
  readonly guard: ParserGuard;
  /** No stage runs before on rows: this one sees all selected rows, with the lines as they are stored. */
  readonly isFirst: boolean;
}

/** Labels that are used: everything, or these. */
export type Demand = "all" | ReadonlySet<string>;

/** The filters that a parser asks as soon as it has found a value: by label name, the first later one. */
export type ParserGuard = ReadonlyMap<string, LabelFilter>;

/** The current line of the current row: a range of the block until a stage replaces it. */
export class LineSource {
  bytes: Uint8Array = new Uint8Array(0);
  start = 0;
  end = 0;
  #text: string | undefined;

  setRow(column: BytesColumn, row: number): void {
    this.bytes = column.bytes;
    this.start = column.offsets[row]!;
    this.end = column.offsets[row + 1]!;
    this.#text = undefined;
  }

  /** For rows whose line nobody looks at. */
  clear(): void {
    this.replace(this.bytes, 0, 0);
  }

  replace(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.#text = undefined;
  }

  get text(): string {
    this.#text ??= readText(this.bytes, this.start, this.end);
    return this.#text;
  }
}

/** Bytes that a query may hold if no limit is given. */
export const defaultMaxLineBytes = 512 * 1024 * 1024;

/** Made lines of one block take at most this part: a scan keeps rows beside them, and each thread has a scan. */
const partOfBlock = 1 / 4;

/** Room for the first lines: most pipelines make none. */
const firstBytes = 64 * 1024;
const firstLines = 1024;

/** The lines of the surviving rows, written one behind the other. */
export class LineBuilder {
  #bytes = new Uint8Array(0);
  #offsets = new Uint32Array(1);
  #count = 0;
  readonly #maxBytes: number;

  constructor(maxBytes = defaultMaxLineBytes) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#count = 0;
  }

  /** Throws invalid_argument when the lines take too many bytes. */
  append({ bytes, start, end }: LineSource): void {
    const at = this.#offsets[this.#count]!;
    const stop = at + end - start;
    if (stop > this.#maxBytes * partOfBlock) throw tooMuchMemory(this.#maxBytes);
    if (stop + paddingBytes > this.#bytes.length) {
      this.#bytes = grown(
        this.#bytes,
        Math.max(firstBytes, this.#bytes.length * 2, stop + paddingBytes),
      );
    }
    if (this.#count + 1 === this.#offsets.length) {
      this.#offsets = grown(this.#offsets, Math.max(firstLines, this.#offsets.length * 2));
    }
    this.#bytes.set(bytes.subarray(start, end), at);
    this.#offsets[++this.#count] = stop;
  }

  /** Valid until the next `begin`. */
  finish(): BytesColumn {
    return { bytes: this.#bytes, offsets: this.#offsets.subarray(0, this.#count + 1) };
  }
}
