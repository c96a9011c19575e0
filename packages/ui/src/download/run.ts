import { call } from "../api/client.js";
import type { Span } from "../api/fields.js";
import { fetchLines, type Line } from "../api/lines.js";
import { bytesToRead, fetchExplanation, fetchHolding } from "../api/stats.js";
import { Paging } from "../lines/paging.js";
import { copyText } from "../lines/selection.js";
import { saveFile } from "../parts/file.js";
import { logIn, selectorText, tryParse } from "../query/derive.js";
import { linesMax } from "../state/config.js";

export type DownloadFormat = "text" | "jsonl" | "csv" | "parquet";

export interface Progress {
  readonly lines: number;
  readonly bytes: number;
  /** Of the range that is done. */
  readonly share: number;
  readonly slices: number;
  readonly finished: boolean;
  readonly note?: string;
}

export interface DownloadOptions {
  readonly format: DownloadFormat;
  readonly signal: AbortSignal;
  /** Slices that an earlier attempt has saved. */
  readonly done: number;
  readonly onProgress: (progress: Progress) => void;
}

const sliceBytes = 64 * 1024 * 1024;
const blobBytesMax = 1024 * 1024 * 1024;
const slicesMax = 2000;

interface Target {
  write(text: string): Promise<void>;
  close(): Promise<void>;
}

type FilePicker = (options: { suggestedName: string }) => Promise<{
  createWritable(): Promise<Target>;
}>;

/** Saves all lines of a query, oldest first: the range in slices, two of them at a time, written in order. */
export async function download(query: string, span: Span, options: DownloadOptions): Promise<void> {
  const { format, signal, onProgress } = options;
  if (format === "parquet") return downloadParquet(query, span, options);
  const target = await openTarget(`skald.${format === "text" ? "txt" : format}`);
  const slices = await slicesOf(query, span, signal);
  let lines = 0;
  let bytes = 0;
  if (format === "csv") await target.write("time,labels,line\r\n");
  const ask = (slice: Span) => linesOf(query, slice, signal);
  let next = ask(slices[0]!);
  for (const [index] of slices.entries()) {
    const mine = next;
    const following = slices[index + 1];
    if (following !== undefined) next = ask(following);
    next.catch(() => undefined);
    const { found, crowded } = await mine;
    const text = textOf(found, format);
    await target.write(text);
    lines += found.length;
    bytes += text.length;
    const finished = index === slices.length - 1;
    const note = crowded
      ? " Some lines of one nanosecond are missing: the server gives no more at once."
      : "";
    onProgress({
      lines,
      bytes,
      share: (index + 1) / slices.length,
      slices: index + 1,
      finished,
      note,
    });
  }
  await target.close();
}

async function openTarget(name: string): Promise<Target> {
  const picker = (window as { showSaveFilePicker?: FilePicker }).showSaveFilePicker;
  if (picker !== undefined) return (await picker({ suggestedName: name })).createWritable();
  const parts: string[] = [];
  let size = 0;
  return {
    write(text) {
      size += text.length;
      if (size > blobBytesMax)
        throw new Error("more than 1 GB: narrow the range, or use the command below");
      parts.push(text);
      return Promise.resolve();
    },
    close() {
      saveFile(name, parts.join(""), "text/plain");
      return Promise.resolve();
    },
  };
}

/** Parts of the range with about 64 MB each, oldest first. */
async function slicesOf(query: string, span: Span, signal: AbortSignal): Promise<Span[]> {
  const explained = await fetchExplanation(query, span, 1, signal);
  const expr = tryParse(query);
  const log = expr === undefined ? undefined : logIn(expr);
  const bytes =
    explained !== undefined
      ? bytesToRead(explained)
      : log === undefined
        ? 0
        : (await fetchHolding(selectorText(log), span, signal)).bytes;
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

function textOf(lines: readonly Line[], format: "text" | "jsonl" | "csv"): string {
  if (lines.length === 0) return "";
  if (format !== "csv") return `${copyText(lines, format)}\n`;
  const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const rows = lines.map(({ ns, stream, metadata, text }) => {
    const labels = JSON.stringify({ ...stream.labels, ...metadata });
    return [ns, cell(labels), cell(text)].join(",");
  });
  return `${rows.join("\r\n")}\r\n`;
}

async function downloadParquet(query: string, span: Span, options: DownloadOptions): Promise<void> {
  const response = await call("loki/api/v1/query_range", {
    params: {
      query,
      start: span.startNs,
      end: span.endNs,
      limit: linesMax.peek(),
      direction: "forward",
    },
    headers: { accept: "application/vnd.apache.parquet" },
    signal: options.signal,
  });
  const type = response.headers.get("content-type") ?? "";
  if (!type.includes("parquet")) {
    throw new Error("this server makes no Parquet (frontend.support_parquet_encoding)");
  }
  const body = await response.arrayBuffer();
  saveFile("skald.parquet", body, "application/vnd.apache.parquet");
  const note = ` The first ${linesMax.peek()} lines at most: one answer has no more.`;
  options.onProgress({
    lines: 0,
    bytes: body.byteLength,
    share: 1,
    slices: 1,
    finished: true,
    note,
  });
}
