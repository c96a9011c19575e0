import { internal, notFound, paddingBytes, SkaldError, unavailable } from "@skald/model";
import type { PageMemory } from "../bytes.js";
import { closeSync, fstatSync, openSync, readSync } from "../files.js";
import type { ObjectRange, ObjectStore } from "../object-store/object-store.js";
import { corruptSegment } from "./segment.js";

/** Reads a file or object by range. The returned bytes have padding behind them and are not reused. */
export type RangeReader = SyncRangeReader | AsyncRangeReader;

export interface SyncRangeReader {
  readonly kind: "sync";
  /** For error texts: a path or a key. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Into `memory` when it is given. */
  read(offset: number, length: number, memory?: PageMemory): Uint8Array;
  /** Announces reads that will follow; may throw what they would throw, for all of them at once. */
  readonly expect?: (ranges: readonly ObjectRange[]) => void;
}

export interface AsyncRangeReader {
  readonly kind: "async";
  readonly name: string;
  readonly sizeBytes: number;
  read(
    offset: number,
    length: number,
    options: { readonly signal: AbortSignal },
  ): Promise<Uint8Array>;
}

export interface FileRangeReader extends SyncRangeReader {
  /** Gives its descriptor back; the next read takes another. */
  suspend(): void;
  close(): void;
}

/**
 * Opens a file for reading by range, for workers: reads block the thread. Throws `not_found` for a file that is gone,
 * `unavailable` when the process has too many open, and `internal`, also when reading, for one that cannot be read. A file
 * whose size is known is opened by the first read.
 */
export function openFileRange(path: string, knownBytes?: number): FileRangeReader {
  const first = knownBytes === undefined ? naming(path, () => openSized(path)) : undefined;
  const sizeBytes = first?.sizeBytes ?? knownBytes ?? 0;
  let fd = first?.fd;
  const suspend = (): void => {
    if (fd !== undefined) closeSync(fd);
    fd = undefined;
  };
  return {
    kind: "sync",
    name: path,
    sizeBytes,
    read: (offset, length, memory) =>
      naming(path, () => {
        fd ??= openSync(path, "r");
        return readRange(fd, path, { offset, length }, memory);
      }),
    suspend,
    close: suspend,
  };
}

/**
 * Opens a segment over a file, and closes the file when that fails. An error about contents names the file also when it
 * arose before there was a reader.
 */
export function openOver<T>(
  path: string,
  knownBytes: number | undefined,
  open: (file: FileRangeReader) => T,
): T {
  let file: FileRangeReader | undefined;
  try {
    file = openFileRange(path, knownBytes);
    return open(file);
  } catch (error) {
    file?.close();
    if (!(error instanceof SkaldError) || error.code !== "internal") throw error;
    throw corruptSegment(path, error);
  }
}

/** A range reader over bytes in memory, copied on each read so that padding can be promised. */
export function bytesRange(name: string, bytes: Uint8Array): SyncRangeReader {
  return {
    kind: "sync",
    name,
    sizeBytes: bytes.byteLength,
    read: (offset, length) => {
      const out = new Uint8Array(length + paddingBytes).subarray(0, length);
      out.set(bytes.subarray(offset, offset + length));
      return out;
    },
  };
}

function openSized(path: string): { fd: number; sizeBytes: number } {
  const fd = openSync(path, "r");
  try {
    return { fd, sizeBytes: fstatSync(fd).size };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Runs a call of the file system and turns what it throws into an error that names the file. */
function naming<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof SkaldError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw notFound(`file ${path} is gone`);
    if (code === "EMFILE" || code === "ENFILE") {
      throw unavailable(`file ${path} cannot be opened: too many files are; raise \`ulimit -n\``, {
        cause: error,
      });
    }
    throw internal(`file ${path} cannot be read: ${message}`, { cause: error });
  }
}

function readRange(
  fd: number,
  path: string,
  { offset, length }: ObjectRange,
  memory: PageMemory | undefined,
): Uint8Array {
  const out = memory?.take(length) ?? Buffer.allocUnsafeSlow(length + paddingBytes);
  let done = 0;
  while (done < length) {
    const got = readSync(fd, out, done, length - done, offset + done);
    if (got === 0)
      throw internal(`file ${path} ends at byte ${offset + done}, before the read does`);
    done += got;
  }
  return out.subarray(0, length);
}

/** Reads an object of a store by range. */
export function objectRange(store: ObjectStore, key: string, sizeBytes: number): AsyncRangeReader {
  return {
    kind: "async",
    name: key,
    sizeBytes,
    async read(offset, length, options) {
      const bytes = await store.getRange(key, { offset, length }, options);
      const behind = bytes.buffer.byteLength - bytes.byteOffset - bytes.byteLength;
      if (behind >= paddingBytes) return bytes;
      const padded = new Uint8Array(length + paddingBytes).subarray(0, length);
      padded.set(bytes);
      return padded;
    },
  };
}
