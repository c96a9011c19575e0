import { type SkaldError, unavailable } from "@skald/model";
import { Semaphore } from "@skald/runtime";
import { ByteWriter } from "../bytes.js";
import { syncInTurn } from "../syncs.js";
import { nodeWalDisk, type WalDisk, walNumbers, walPath } from "./disk.js";
import {
  encodeWalFileHeader,
  fillWalRecordHeader,
  maxWalRecordBytes,
  refuseNewerWal,
  walFileHeaderBytes,
  walRecordHeaderBytes,
} from "./frame.js";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.js";
import { type WalRecord, walRecordTypes, writeWalRecord } from "./record.js";

export interface WalOptions
  extends Pick<
    GroupCommitOptions,
    "dir" | "fsync" | "fsyncIntervalMs" | "onError" | "onTimed" | "clock" | "sleep"
  > {
  /** A file that has reached this size is followed by a new one. */
  readonly maxFileBytes: number;
  /** Bytes that may wait to be written; more wait in `reserve`. */
  readonly maxQueuedBytes: number;
  /** Pushes are refused while a larger part of the disk is in use; 0 turns the check off. */
  readonly diskFullThreshold: number;
  readonly disk?: WalDisk;
  /** The largest payload of one record; `maxWalRecordBytes` where absent. */
  readonly maxRecordBytes?: number;
}

/** Place of a record: ordered by file, then offset. */
export interface WalPosition {
  readonly file: number;
  readonly offset: number;
}

export interface WalStats {
  readonly files: number;
  readonly bytes: number;
  readonly queuedBytes: number;
  readonly writes: number;
  readonly syncs: number;
  readonly failures: number;
  /** See `GroupCommit.syncingMs`. */
  readonly syncingMs: number;
}

/**
 * Append-only log of what was pushed and is not in a segment yet: numbers its files, knows what each holds, and refuses
 * when the disk is full. When a write fails, all waiting records are lost, `onAbort` is called first, and a new file
 * begins.
 */
export class Wal {
  readonly #options: WalOptions;
  readonly #disk: WalDisk;
  readonly #room: Semaphore;
  readonly #sizes: Map<number, number>;
  readonly #commit: GroupCommit;
  #onAbort: (error: SkaldError) => void = () => undefined;
  #onUnsynced: (file: number) => void = () => undefined;
  #file: number;
  #marker = drawMarker();
  #offset = 0;
  #refusal: SkaldError | undefined;

  /**
   * Opens the directory; files found there stay for replay and are cut like those written later. Throws `newer_version`, with
   * nothing changed, when a later program wrote one of them.
   */
  static async open(options: WalOptions): Promise<Wal> {
    const disk = options.disk ?? nodeWalDisk;
    const sizes = new Map<number, number>();
    for (const number of walNumbers(await disk.list(options.dir))) {
      const path = walPath(options.dir, number);
      refuseNewerWal(path, await disk.readHead(path, walFileHeaderBytes));
      sizes.set(number, await disk.sizeOf(path));
    }
    // What a process deleted that was killed before its sync.
    if (options.fsync !== "never") await disk.syncDir(options.dir);
    return new Wal(options, disk, sizes);
  }

  private constructor(options: WalOptions, disk: WalDisk, sizes: Map<number, number>) {
    this.#options = options;
    this.#disk = disk;
    this.#sizes = sizes;
    this.#room = new Semaphore(options.maxQueuedBytes);
    this.#file = Math.max(0, ...sizes.keys()) + 1;
    this.#commit = new GroupCommit({
      ...options,
      disk,
      onLost: (error) => this.#lose(error),
      onSize: (file, bytes) => this.#sizes.set(file, bytes),
      onUnsynced: (file) => {
        if (file === this.#file) this.#beginFile();
        this.#onUnsynced(file);
      },
    });
  }

  /** Sets the handler that learns first that all records which are not written yet are lost. */
  onAbort(handler: (error: SkaldError) => void): void {
    this.#onAbort = handler;
  }

  /**
   * Sets the handler for a file that could not be synced after its records were answered; the file gets no more records. A
   * later sync of it may succeed and mean nothing, so its rows must be made safe elsewhere.
   */
  onUnsynced(handler: (file: number) => void): void {
    this.#onUnsynced = handler;
  }

  /** Why pushes must be refused now: the disk is full. */
  get refusal(): SkaldError | undefined {
    return this.#refusal;
  }

  /** Waits until there is room in the queue; call what it returns when the append is done. */
  reserve(sizeBytes: number, signal?: AbortSignal): Promise<() => void> {
    const permits = this.#permits(sizeBytes);
    return this.#room.acquire(signal === undefined ? { permits } : { permits, signal });
  }

  /** The same without waiting: undefined when there is no room, or others wait. */
  tryReserve(sizeBytes: number): (() => void) | undefined {
    return this.#room.tryAcquire(this.#permits(sizeBytes));
  }

  /** The file that the next append goes to: begun anew when the last one is full. */
  nextFile(): number {
    if (this.#offset >= this.#options.maxFileBytes) this.#beginFile();
    return this.#file;
  }

  /** Where in its file the next append goes, as far as it is known before `nextFile`. */
  get offset(): number {
    return this.#offset;
  }

  /** Begins a new file unless the current one is empty, so that all records so far can be cut. */
  rotate(): void {
    if (this.#offset > 0) this.#beginFile();
  }

  /**
   * Appends records, all or none, to the file that `nextFile` just returned. `onWritten` is called when they are written, in the order of appends; the promise resolves after it. Rejects with `unavailable`, also when a record is
   * larger than the log takes.
   */
  append(
    records: readonly WalRecord[],
    onWritten: () => void,
  ): { readonly position: WalPosition; readonly written: Promise<void> } {
    if (this.#commit.closed) throw unavailable("the write-ahead log is closed");
    const write = this.#encode(records);
    let bytes = 0;
    for (const part of write.parts) bytes += part.byteLength;
    const position = { file: this.#file, offset: Math.max(this.#offset, walFileHeaderBytes) };
    this.#offset += bytes;
    const written = this.#commit.write({ ...write, file: position.file, bytes, onWritten });
    return { position, written };
  }

  /** Syncs all records that are written. Rejects when that fails, after a call of `onUnsynced`. */
  sync(): Promise<void> {
    return this.#commit.sync();
  }

  /** Whether `cut` would delete any file. */
  canCut(before: number): boolean {
    return this.firstFile < Math.min(before, this.#file);
  }

  /**
   * Deletes the files before a number, except the current one; what they hold must be safe elsewhere. They count until no
   * power cut can bring them back, because a caller may then forget where their rows are.
   */
  async cut(before: number): Promise<number> {
    await this.#commit.closeBefore(this.#file);
    const { dir, fsync } = this.#options;
    const old = [...this.#sizes.keys()].filter((file) => file < before && file < this.#file);
    for (const file of old) await this.#disk.remove(walPath(dir, file));
    if (old.length > 0 && fsync !== "never") await syncInTurn(() => this.#disk.syncDir(dir));
    for (const file of old) this.#sizes.delete(file);
    return old.length;
  }

  /** The number of the oldest file there is. */
  get firstFile(): number {
    return Math.min(this.#file, ...this.#sizes.keys());
  }

  /** Bytes from the beginning of a file to the end of the log: what a head that begins there keeps from being cut. */
  bytesSince(file: number): number {
    let bytes = 0;
    for (const [number, size] of this.#sizes) if (number >= file) bytes += size;
    return bytes;
  }

  /** Looks at how full the disk is and refuses or takes pushes accordingly. */
  async checkDisk(): Promise<void> {
    const { dir, diskFullThreshold } = this.#options;
    if (diskFullThreshold <= 0) {
      this.#refusal = undefined;
      return;
    }
    const { totalBytes, freeBytes } = await this.#disk.space(dir);
    const used = totalBytes === 0 ? 0 : 1 - freeBytes / totalBytes;
    this.#refusal = used < diskFullThreshold ? undefined : diskFull(used, diskFullThreshold);
  }

  stats(): WalStats {
    return {
      files: this.#sizes.size,
      bytes: this.bytesSince(0),
      queuedBytes: this.#commit.queuedBytes,
      ...this.#commit.counts,
      syncingMs: this.#commit.syncingMs,
    };
  }

  /** Writes and syncs what was appended, then closes. */
  close(): Promise<void> {
    return this.#commit.close();
  }

  #permits(sizeBytes: number): number {
    return Math.min(Math.max(1, sizeBytes), this.#options.maxQueuedBytes);
  }

  #beginFile(): void {
    this.#file++;
    this.#offset = 0;
    this.#marker = drawMarker();
  }

  /** A record that is too large fails like a write, in its turn: what was appended before it is written. */
  #encode(records: readonly WalRecord[]): { parts: Uint8Array[]; error?: unknown } {
    const maxBytes = this.#options.maxRecordBytes ?? maxWalRecordBytes;
    const parts: Uint8Array[] = [];
    if (this.#offset === 0) parts.push(encodeWalFileHeader(this.#marker));
    try {
      for (const record of records) {
        const writer = new ByteWriter(recordRoomBytes);
        writer.take(walRecordHeaderBytes);
        const body = writeWalRecord(writer, record);
        const bytes = writer.view();
        const type = walRecordTypes[record.kind];
        const rest = body === undefined ? [] : [body];
        fillWalRecordHeader(this.#marker, { bytes, type, maxBytes }, rest);
        parts.push(bytes, ...rest);
      }
    } catch (error) {
      return { parts: [], error };
    }
    return { parts };
  }

  #lose(error: unknown): SkaldError {
    this.#beginFile();
    const refusal = refusalOf(error);
    if (refusal.full) this.#refusal = refusal.error;
    this.#onAbort(refusal.error);
    return refusal.error;
  }
}

/** What most records take beside the body. */
const recordRoomBytes = 512;

function refusalOf(error: unknown): { error: SkaldError; full: boolean } {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const full = code === "ENOSPC" || code === "EDQUOT";
  const text = full
    ? "the disk of the write-ahead log is full; free space to go on"
    : "the write-ahead log could not be written; try again";
  return { full, error: unavailable(text, { cause: error }) };
}

function diskFull(used: number, threshold: number): SkaldError {
  const percent = (part: number) => `${Math.round(part * 100)}%`;
  return unavailable(
    `the disk of the write-ahead log is ${percent(used)} full, pushes are refused from ${percent(threshold)}; free space or raise wal.disk_full_threshold`,
  );
}

/** Never 0, so that no zeroed part of a file looks like a record. */
function drawMarker(): number {
  return Math.floor(Math.random() * 0xffffffff) + 1;
}
