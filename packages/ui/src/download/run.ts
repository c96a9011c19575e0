import { call } from "../api/client.js";
import type { Span } from "../api/fields.js";
import { fetchLines, type Line } from "../api/lines.js";
import { bytesToRead, fetchExplanation, fetchHolding } from "../api/stats.js";
import { valueIn } from "../fields/counts.js";
import { Paging } from "../lines/paging.js";
import { copyText } from "../lines/selection.js";
import { saveFile } from "../parts/file.js";
import { logIn, selectorText, tryParse } from "../query/derive.js";
import { linesMax } from "../state/config.js";
import { ParquetJoin } from "./parquet.js";

export type DownloadFormat = "text" | "jsonl" | "csv" | "parquet";

export interface Progress {
  readonly lines: number;
  readonly bytes: number;
  /** Of the range that is done. */
  readonly share: number;
  readonly finished: boolean;
  /** Whether a nanosecond has more lines than the server gives at once, so that some are missing. */
  readonly crowded: boolean;
}

export interface DownloadOptions {
  readonly query: string;
  readonly span: Span;
  readonly format: DownloadFormat;
  /** Fields that are columns of a CSV file. */
  readonly columns: readonly string[];
}

const sliceBytes = 64 * 1024 * 1024;
const slicesMax = 2000;
const encoder = new TextEncoder();

/**
 * Saves all lines of a query, oldest first, part after part of the range. A run that failed or was cancelled goes on where it
 * ended when it is started again.
 */
export class Download {
  readonly #options: DownloadOptions;
  readonly #join = new ParquetJoin();
  #target: Target | undefined;
  #slices: Span[] = [];
  /** What is saved: slices of the range, or with Parquet all up to a time. */
  #done = 0;
  #at: bigint;
  #lengthNs = 0n;
  #lines = 0;
  #bytes = 0;
  #crowded = false;

  constructor(options: DownloadOptions) {
    this.#options = options;
    this.#at = BigInt(options.span.startNs);
  }

  async run(signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<void> {
    const { format } = this.#options;
    this.#target ??= await openTarget(`skald.${format === "text" ? "txt" : format}`);
    if (format === "parquet") await this.#saveParquet(signal, onProgress);
    else await this.#saveTexts(format, signal, onProgress);
    await this.finish();
    onProgress(this.#progress(1, true));
  }

  /** Closes the file with what it has. */
  async finish(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    if (target === undefined) return;
    if (this.#options.format === "parquet" && this.#bytes > 0) {
      for (const piece of this.#join.end()) await target.write(piece);
    }
    await target.close();
  }

  #progress(share: number, finished = false): Progress {
    return {
      ...{ lines: this.#lines, bytes: this.#bytes, share, finished, crowded: this.#crowded },
    };
  }

  async #write(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#target?.write(bytes);
    this.#bytes += bytes.length;
  }

  /** The slices in order, while the one after is on its way. */
  async #saveTexts(
    format: "text" | "jsonl" | "csv",
    signal: AbortSignal,
    onProgress: (progress: Progress) => void,
  ): Promise<void> {
    const { query, span, columns } = this.#options;
    if (this.#slices.length === 0) {
      this.#slices = await slicesOf(query, span, signal);
      if (format === "csv") await this.#write(encoder.encode(csvHead(columns)));
    }
    const ask = (at: number) => {
      const slice = this.#slices[at];
      const asked = slice === undefined ? undefined : linesOf(query, slice, signal);
      // The caller that awaits the promise gets the error.
      asked?.catch(() => undefined);
      return asked;
    };
    for (let next = ask(this.#done); next !== undefined; ) {
      const mine = next;
      next = ask(this.#done + 1);
      const { found, crowded } = await mine;
      await this.#write(encoder.encode(textOf(found, format, columns)));
      this.#done++;
      this.#lines += found.length;
      this.#crowded ||= crowded;
      onProgress(this.#progress(this.#done / this.#slices.length));
    }
  }

  /** Answers of the server for parts of the range, joined. A part with as many lines as an answer may have is asked in halves. */
  async #saveParquet(signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<void> {
    const { query, span } = this.#options;
    const [start, end] = [BigInt(span.startNs), BigInt(span.endNs)];
    if (this.#lengthNs === 0n) this.#lengthNs = await partLength(query, span, signal);
    while (this.#at < end) {
      const to = this.#at + this.#lengthNs < end ? this.#at + this.#lengthNs : end;
      const file = await fetchParquet(query, this.#at, to, signal);
      const rows = Number(ParquetJoin.rowsIn(file));
      const isFull = rows >= linesMax.peek();
      if (isFull && to - this.#at > 1n) {
        this.#lengthNs = (to - this.#at) / 2n;
        continue;
      }
      this.#crowded ||= isFull;
      for (const piece of this.#join.add(file)) await this.#write(piece);
      this.#at = to;
      this.#lines += rows;
      if (rows * 3 < linesMax.peek()) this.#lengthNs *= 2n;
      onProgress(this.#progress(Number(this.#at - start) / Number(end - start)));
    }
  }
}

async function fetchParquet(
  query: string,
  from: bigint,
  to: bigint,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const range = { start: String(from), end: String(to) };
  const response = await call("loki/api/v1/query_range", {
    params: { query, ...range, limit: linesMax.peek(), direction: "forward" },
    headers: { accept: "application/vnd.apache.parquet" },
    signal,
  });
  if (!response.headers.get("content-type")?.includes("parquet"))
    throw new Error("this server makes no Parquet (frontend.support_parquet_encoding)");
  return new Uint8Array(await response.arrayBuffer());
}

/** A part of the range that has about half as many lines as an answer may have, if they come evenly. */
async function partLength(query: string, span: Span, signal: AbortSignal): Promise<bigint> {
  const lengthNs = BigInt(span.endNs) - BigInt(span.startNs);
  const { entries } = await holdingOf(query, span, signal);
  const parts = BigInt(Math.max(1, Math.ceil((2 * entries) / linesMax.peek())));
  return lengthNs / parts || 1n;
}

async function holdingOf(query: string, span: Span, signal: AbortSignal) {
  const expr = tryParse(query);
  const log = expr === undefined ? undefined : logIn(expr);
  if (log === undefined) return { streams: 0, bytes: 0, entries: 0 };
  return fetchHolding(selectorText(log), span, signal);
}

/** Parts of the range with about 64 MB each, oldest first. */
async function slicesOf(query: string, span: Span, signal: AbortSignal): Promise<Span[]> {
  const explained = await fetchExplanation(query, span, 1, signal);
  const bytes =
    explained === undefined ? (await holdingOf(query, span, signal)).bytes : bytesToRead(explained);
  const count = BigInt(Math.min(slicesMax, Math.max(1, Math.ceil(bytes / sliceBytes))));
  const [from, to] = [BigInt(span.startNs), BigInt(span.endNs)];
  const edge = (at: bigint) => String(from + ((to - from) * at) / count);
  return Array.from({ length: Number(count) }, (_, at) => ({
    startNs: edge(BigInt(at)),
    endNs: edge(BigInt(at) + 1n),
  }));
}

async function linesOf(
  query: string,
  slice: Span,
  signal: AbortSignal,
): Promise<{ found: Line[]; crowded: boolean }> {
  const size = linesMax.peek();
  const paging = new Paging({
    ...{ query, ...slice, size, limitMax: size, direction: "forward" as const },
    heldMax: Number.POSITIVE_INFINITY,
    fetch: (one) => fetchLines(one, signal),
  });
  while (!paging.done) await paging.more();
  const found = Array.from({ length: paging.count }, (_, index) => paging.at(index)!);
  return { found, crowded: paging.crowded.length > 0 };
}

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;

function csvHead(columns: readonly string[]): string {
  return `${["time", "labels", ...columns.map(cell), "line"].join(",")}\r\n`;
}

function textOf(
  lines: readonly Line[],
  format: "text" | "jsonl" | "csv",
  columns: readonly string[],
): string {
  if (lines.length === 0) return "";
  if (format !== "csv") return `${copyText(lines, format)}\n`;
  const rows = lines.map((line) => {
    const labels = JSON.stringify({ ...line.stream.labels, ...line.metadata });
    const values = columns.map((name) => cell(valueIn(line, name) ?? ""));
    return [line.ns, cell(labels), ...values, cell(line.text)].join(",");
  });
  return `${rows.join("\r\n")}\r\n`;
}

/** A file that is written piece after piece. */
interface Target {
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}

type FilePicker = (options: { suggestedName: string }) => Promise<{
  createWritable(): Promise<Target>;
}>;

const blobBytesMax = 1024 * 1024 * 1024;

/** A file that the user chooses, or one that the browser holds until it is complete. */
async function openTarget(name: string): Promise<Target> {
  const picker = (window as { showSaveFilePicker?: FilePicker }).showSaveFilePicker;
  if (picker !== undefined) return (await picker({ suggestedName: name })).createWritable();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  return {
    write(bytes) {
      size += bytes.length;
      if (size > blobBytesMax)
        throw new Error("more than 1 GB: narrow the range, or use the command below");
      parts.push(bytes);
      return Promise.resolve();
    },
    close() {
      saveFile(name, parts);
      return Promise.resolve();
    },
  };
}
