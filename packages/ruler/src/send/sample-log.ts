import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { makeLabels } from "@skald/model";
import { pairsOf } from "../evaluate/series-ends.js";
import type { TimedSample } from "./write-request.js";

/** How far a reader has read a log. */
export interface LogPosition {
  /** Number of the file. */
  readonly file: number;
  readonly offset: number;
}

/** Files end at this size, bytes. */
const maxFileBytes = 8 * 1024 * 1024;
/** Bytes to read at a time. A record is never longer. */
const maxReadBytes = 1024 * 1024;
/** Samples of one record. */
const maxRecordSamples = 1000;

interface LogFile {
  readonly number: number;
  bytes: number;
  /** ms since the epoch */
  lastWriteMs: number;
}

/**
 * Samples on their way, in files of lines: a checksum, a space and JSON. Appended samples survive the end of the process.
 * Reading skips lines that are damaged or that a crash cut off. Each reader keeps its position in a file of its own.
 */
export class SampleLog {
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #nowMs: () => number;
  #files: LogFile[] = [];
  #handle: FileHandle | undefined;
  /** Appends follow each other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    directory: string,
    options: { readonly maxBytes: number; readonly nowMs: () => number },
  ) {
    this.#directory = directory;
    this.#maxBytes = options.maxBytes;
    this.#nowMs = options.nowMs;
  }

  get sizeBytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The time of the last append, ms since the epoch; 0 for an empty log. */
  get lastWriteMs(): number {
    return Math.max(0, ...this.#files.map(({ lastWriteMs }) => lastWriteMs));
  }

  /** Finds the files of earlier runs. New samples go to a new file. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    const found: LogFile[] = [];
    for (const name of await readdir(this.#directory)) {
      const number = Number(/^(\d{10})\.log$/.exec(name)?.[1]);
      if (!(number > 0)) continue;
      const { size, mtimeMs } = await stat(join(this.#directory, name));
      found.push({ number, bytes: size, lastWriteMs: mtimeMs });
    }
    this.#files = found.sort((a, b) => a.number - b.number);
  }

  async close(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#handle?.close();
    this.#handle = undefined;
  }

  /** Resolves when the operating system has the samples, with the number of bytes dropped to make room. */
  append(samples: readonly TimedSample[]): Promise<number> {
    const done = this.#last.catch(() => undefined).then(() => this.#append(samples));
    this.#last = done;
    return done;
  }

  /** Reads samples behind a position; none at the end of the log. */
  async read(from: LogPosition): Promise<{ samples: TimedSample[]; next: LogPosition }> {
    const file = this.#files.find(({ number }) => number >= from.file);
    if (file === undefined) return { samples: [], next: from };
    const offset = file.number === from.file ? from.offset : 0;
    const length = Math.min(maxReadBytes, file.bytes - offset);
    if (length <= 0) {
      const isLast = file === this.#files.at(-1);
      if (isLast) return { samples: [], next: { file: file.number, offset } };
      return this.read({ file: file.number + 1, offset: 0 });
    }
    const bytes = await readPart(this.#pathOf(file.number), offset, length);
    const end = bytes.lastIndexOf(10) + 1;
    // A line without an end is the rest of a crash.
    const taken = end === 0 ? length : end;
    const lines = bytes.subarray(0, taken).toString("utf8").split("\n");
    const samples = lines.flatMap((line) => readLine(line) ?? []);
    const next = { file: file.number, offset: offset + taken };
    return samples.length > 0 ? { samples, next } : this.read(next);
  }

  async loadPosition(reader: string): Promise<LogPosition> {
    try {
      const text = await readFile(this.#cursorOf(reader), "utf8");
      const { file, offset } = JSON.parse(text) as LogPosition;
      if (Number.isInteger(file) && Number.isInteger(offset)) return { file, offset };
    } catch {
      // A reader that has read nothing yet starts at the beginning.
    }
    return { file: 0, offset: 0 };
  }

  async savePosition(reader: string, position: LogPosition): Promise<void> {
    const path = this.#cursorOf(reader);
    await writeFile(`${path}.tmp`, JSON.stringify(position));
    await rename(`${path}.tmp`, path);
  }

  /** Deletes files older than `minAgeMs` that all readers have read, and all files older than `maxAgeMs`. Returns the unread bytes. */
  async truncate(
    readers: readonly LogPosition[],
    { minAgeMs, maxAgeMs }: { minAgeMs: number; maxAgeMs: number },
  ): Promise<number> {
    const first = Math.min(...readers.map(({ file }) => file));
    const nowMs = this.#nowMs();
    let unread = 0;
    for (const file of this.#files.slice(0, -1)) {
      const age = nowMs - file.lastWriteMs;
      const isRead = file.number < first;
      if (age < maxAgeMs && !(isRead && age >= minAgeMs)) continue;
      if (!isRead) unread += file.bytes;
      await this.#drop(file);
    }
    return unread;
  }

  async #append(samples: readonly TimedSample[]): Promise<number> {
    for (let at = 0; at < samples.length; at += maxRecordSamples) {
      const line = Buffer.from(lineOf(samples.slice(at, at + maxRecordSamples)));
      const file = await this.#writable();
      await this.#handle?.appendFile(line);
      file.bytes += line.length;
      file.lastWriteMs = this.#nowMs();
    }
    let dropped = 0;
    while (this.sizeBytes > this.#maxBytes && this.#files.length > 1) {
      const [oldest] = this.#files as [LogFile];
      dropped += oldest.bytes;
      await this.#drop(oldest);
    }
    return dropped;
  }

  async #writable(): Promise<LogFile> {
    const last = this.#files.at(-1);
    if (last !== undefined && this.#handle !== undefined && last.bytes < maxFileBytes) return last;
    await this.#handle?.close();
    this.#handle = undefined;
    const file = { number: (last?.number ?? 0) + 1, bytes: 0, lastWriteMs: this.#nowMs() };
    this.#handle = await open(this.#pathOf(file.number), "a");
    this.#files.push(file);
    return file;
  }

  async #drop(file: LogFile): Promise<void> {
    this.#files = this.#files.filter((other) => other !== file);
    await rm(this.#pathOf(file.number), { force: true });
  }

  #pathOf(number: number): string {
    return join(this.#directory, `${String(number).padStart(10, "0")}.log`);
  }

  #cursorOf(reader: string): string {
    return join(this.#directory, `${encodeURIComponent(reader)}.position`);
  }
}

async function readPart(path: string, offset: number, length: number): Promise<Buffer> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** `[[time, value, name, value, ...], ...]`. Numbers that JSON lacks are texts, and the end of a series is null. */
function lineOf(samples: readonly TimedSample[]): string {
  const plain = samples.map(({ labels, timeMs, value }) => {
    const number = value === undefined ? null : Number.isFinite(value) ? value : String(value);
    return [timeMs, number, ...pairsOf(labels).flat()];
  });
  const text = JSON.stringify(plain);
  return `${crc32(text).toString(16).padStart(8, "0")} ${text}\n`;
}

function readLine(line: string): TimedSample[] | undefined {
  const text = line.slice(9);
  if (Number.parseInt(line.slice(0, 8), 16) !== crc32(text) || text === "") return undefined;
  const plain = JSON.parse(text) as [number, number | string | null, ...string[]][];
  return plain.map(([timeMs, value, ...texts]) => {
    const pairs: [string, string][] = [];
    for (let i = 0; i < texts.length; i += 2) pairs.push([texts[i]!, texts[i + 1] as string]);
    return { timeMs, value: value === null ? undefined : Number(value), labels: makeLabels(pairs) };
  });
}
