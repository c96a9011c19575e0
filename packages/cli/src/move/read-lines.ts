import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import * as zlib from "node:zlib";
import { Failure } from "../shell/command.js";

export interface ReadLine {
  readonly text: string;
  /** Where the next line begins, in bytes of the uncompressed file. */
  readonly end: number;
}

const newline = 0x0a;
/** A longer line is cut into parts of this size. */
const lineBytesMax = 1024 * 1024;
const pollMs = 250;

interface ReadOptions {
  /** Bytes at the start that are left out. */
  readonly skip?: number;
  /** Leaves out a last line without an end, because more of it may come. */
  readonly isGrowing?: boolean;
}

/** The lines of a stream, in batches as they come. */
export async function* readLines(
  input: Readable,
  { skip = 0, isGrowing = false }: ReadOptions = {},
): AsyncGenerator<ReadLine[]> {
  let rest: Buffer = Buffer.alloc(0);
  let position = 0;
  for await (const part of input) {
    let bytes = Buffer.from(part as Uint8Array);
    if (position + bytes.length <= skip) {
      position += bytes.length;
      continue;
    }
    if (position < skip) {
      bytes = bytes.subarray(skip - position);
      position = skip;
    }
    const from = rest.length;
    const whole = from === 0 ? bytes : Buffer.concat([rest, bytes]);
    const lines: ReadLine[] = [];
    let start = 0;
    let end = whole.indexOf(newline, from);
    for (; end >= 0; end = whole.indexOf(newline, start)) {
      position += end + 1 - start;
      lines.push({ text: textOf(whole.subarray(start, end)), end: position });
      start = end + 1;
    }
    for (; whole.length - start > lineBytesMax; start += lineBytesMax) {
      position += lineBytesMax;
      lines.push({ text: textOf(whole.subarray(start, start + lineBytesMax)), end: position });
    }
    rest = whole.subarray(start);
    if (lines.length > 0) yield lines;
  }
  if (rest.length > 0 && !isGrowing) yield [{ text: textOf(rest), end: position + rest.length }];
}

function textOf(bytes: Buffer): string {
  const end = bytes.at(-1) === 0x0d ? bytes.length - 1 : bytes.length;
  return bytes.toString("utf8", 0, end);
}

/** A file from a place on; `.gz` and `.zst` are unpacked, and the place counts unpacked bytes. */
export function readFileLines(path: string, offset: number): AsyncGenerator<ReadLine[]> {
  if (path.endsWith(".gz"))
    return readLines(createReadStream(path).pipe(zlib.createGunzip()), { skip: offset });
  if (path.endsWith(".zst")) return readLines(Readable.from(unpackZstd(path)), { skip: offset });
  return shifted(createReadStream(path, { start: offset }), offset);
}

/** The bytes of all frames of a file: Node's decompressor ends after the first. */
async function* unpackZstd(path: string): AsyncGenerator<Buffer> {
  const { createZstdDecompress } = zlib;
  if (createZstdDecompress === undefined)
    throw new Failure("usage", `${path}: this Node has no zstd; Node 22.15 has`);
  const { size } = await stat(path);
  for (let at = 0; at < size; ) {
    const frame = createReadStream(path, { start: at }).pipe(createZstdDecompress());
    yield* frame;
    if (frame.bytesWritten === 0) throw new Failure("usage", `${path}: no zstd at byte ${at}`);
    at += frame.bytesWritten;
  }
}

async function* shifted(
  input: Readable,
  offset: number,
  options: ReadOptions = {},
): AsyncGenerator<ReadLine[]> {
  for await (const lines of readLines(input, options))
    yield lines.map(({ text, end }) => ({ text, end: end + offset }));
}

/** Where a file was read to. */
export interface FilePlace {
  readonly inode: number;
  readonly offset: number;
}

/**
 * The lines of a file as they are written, until the signal aborts. A file that was renamed is read to its end, then the new
 * one of its name from its start; one that was cut is read from its start. A line is read once its end is written.
 */
export async function* followFile(
  path: string,
  place: FilePlace,
  signal: AbortSignal,
): AsyncGenerator<{ readonly lines: ReadLine[]; readonly inode: number }> {
  let file = await openWhenThere(path, signal);
  let offset = file?.inode === place.inode ? place.offset : 0;
  try {
    while (!signal.aborted && file !== undefined) {
      // Looked at before the file is read: what is written between the two is read from the old file next time.
      const named = await stat(path).catch(() => undefined);
      const { size } = await file.handle.stat();
      if (size < offset) offset = 0;
      if (size > offset) {
        const input = file.handle.createReadStream({ start: offset, autoClose: false });
        for await (const lines of shifted(input, offset, { isGrowing: true })) {
          offset = lines.at(-1)!.end;
          yield { lines, inode: file.inode };
        }
      } else if (named !== undefined && named.ino !== file.inode) {
        await file.handle.close();
        file = await openWhenThere(path, signal);
        offset = 0;
        continue;
      }
      await pause(pollMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await file?.handle.close();
  }
}

/** Opens a file, which may have to be made first; undefined once the signal aborts. */
async function openWhenThere(path: string, signal: AbortSignal) {
  while (!signal.aborted) {
    const handle = await open(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (handle !== undefined) return { handle, inode: (await handle.stat()).ino };
    await pause(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
}
