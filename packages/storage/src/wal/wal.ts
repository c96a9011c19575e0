import { type SkaldError, unavailable } from "@skald/model";
import { Semaphore, type Sleep, sleep } from "@skald/runtime";
import { nodeWalDisk, type WalDisk, type WalDiskFile, walNumbers, walPath } from "./disk.js";
import { encodeWalFileHeader, encodeWalRecordHeader, walFileHeaderBytes } from "./frame.js";
import { encodeWalRecord, type WalRecord, walRecordTypes } from "./record.js";

export interface WalOptions {
  readonly dir: string;
  /** When a push is answered: after the sync, or after the write with a sync every interval, or with none. */
  readonly fsync: "always" | "interval" | "never";
  readonly fsyncIntervalMs: number;
  /** A file that has reached this size is followed by a new one. */
  readonly maxFileBytes: number;
  /** Bytes that may wait to be written; more wait in `reserve`. */
  readonly maxQueuedBytes: number;
  /** Pushes are refused while a larger part of the disk is in use; 0 turns the check off. */
  readonly diskFullThreshold: number;
  /** Told of each failed write or sync, to log it. */
  readonly onError: (error: unknown) => void;
  readonly disk?: WalDisk;
  readonly sleep?: Sleep;
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
}

/**
 * Append-only log of what was pushed and is not in a segment yet. Appends of one turn of the event loop go out in one
 * write, in order. A failed write fails everything that waits, `onAbort` is told first, and a new file is begun, so what
 * was written is always a prefix of what was appended.
 */
export class Wal {
  readonly #options: WalOptions;
  readonly #disk: WalDisk;
  readonly #room: Semaphore;
  readonly #sizes: Map<number, number>;
  readonly #abort = new AbortController();
  readonly #background = new Set<Promise<void>>();
  #onAbort: (error: SkaldError) => void = () => undefined;
  #file: number;
  #marker = drawMarker();
  #offset = 0;
  #queue: Entry[] = [];
  #queuedBytes = 0;
  #pump: Promise<void> | undefined;
  #open: OpenFile | undefined;
  #refusal: SkaldError | undefined;
  #closed = false;
  #counts = { writes: 0, syncs: 0, failures: 0 };

  /** Opens the directory; files found there stay for replay and are cut like those written later. */
  static async open(options: WalOptions): Promise<Wal> {
    const disk = options.disk ?? nodeWalDisk;
    const sizes = new Map<number, number>();
    for (const number of walNumbers(await disk.list(options.dir))) {
      sizes.set(number, await disk.sizeOf(walPath(options.dir, number)));
    }
    return new Wal(options, disk, sizes);
  }

  private constructor(options: WalOptions, disk: WalDisk, sizes: Map<number, number>) {
    this.#options = options;
    this.#disk = disk;
    this.#sizes = sizes;
    this.#room = new Semaphore(options.maxQueuedBytes);
    this.#file = Math.max(0, ...sizes.keys()) + 1;
  }

  /** Sets who is told, before anybody else, that all records which are not written yet are lost. */
  onAbort(handler: (error: SkaldError) => void): void {
    this.#onAbort = handler;
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

  /** Begins a new file unless the current one is empty, so that all records so far can be cut. */
  rotate(): void {
    if (this.#offset > 0) this.#beginFile();
  }

  /**
   * Appends records, all or none, to the file that `nextFile` just told. `onWritten` is called when they are
   * written, in the order of appends; the promise resolves after it. Rejects with `unavailable`.
   */
  append(
    records: readonly WalRecord[],
    onWritten: () => void,
  ): { readonly position: WalPosition; readonly written: Promise<void> } {
    if (this.#closed) throw unavailable("the write-ahead log is closed");
    const parts: Uint8Array[] = [];
    if (this.#offset === 0) parts.push(encodeWalFileHeader(this.#marker));
    for (const record of records) {
      const payload = encodeWalRecord(record);
      parts.push(encodeWalRecordHeader(this.#marker, walRecordTypes[record.kind], payload));
      parts.push(...payload);
    }
    const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
    const position = { file: this.#file, offset: Math.max(this.#offset, walFileHeaderBytes) };
    this.#offset += bytes;
    this.#queuedBytes += bytes;
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ file: position.file, parts, bytes, onWritten, resolve, reject });
    });
    this.#pump ??= this.#writeQueue();
    return { position, written };
  }

  /** Deletes the files before a number, except the current one; what they hold must be safe elsewhere. */
  async cut(before: number): Promise<number> {
    const last = this.#open;
    if (last !== undefined && last.number < this.#file && this.#pump === undefined) {
      this.#open = undefined;
      await this.#retire(last);
    }
    const old = [...this.#sizes.keys()].filter((file) => file < before && file < this.#file);
    for (const file of old) {
      await this.#disk.remove(walPath(this.#options.dir, file));
      this.#sizes.delete(file);
    }
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
    const used = await this.#disk.usedFraction(dir);
    this.#refusal = used < diskFullThreshold ? undefined : diskFull(used, diskFullThreshold);
  }

  stats(): WalStats {
    return {
      files: this.#sizes.size,
      bytes: this.bytesSince(0),
      queuedBytes: this.#queuedBytes,
      ...this.#counts,
    };
  }

  /** Writes and syncs what was appended, then closes. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#pump;
    this.#abort.abort();
    if (this.#open !== undefined) await this.#retire(this.#open);
    this.#open = undefined;
    await Promise.all(this.#background);
  }

  #permits(sizeBytes: number): number {
    return Math.min(Math.max(1, sizeBytes), this.#options.maxQueuedBytes);
  }

  #beginFile(): void {
    this.#file++;
    this.#offset = 0;
    this.#marker = drawMarker();
  }

  /** Writes groups until the queue is empty. Waits one turn first, so that pushes that came together share a write. */
  async #writeQueue(): Promise<void> {
    await nextTurn();
    while (this.#queue.length > 0) {
      const group = takeGroup(this.#queue);
      try {
        await this.#writeGroup(group);
      } catch (error) {
        await this.#fail(error, group);
        continue;
      }
      for (const entry of group) {
        this.#queuedBytes -= entry.bytes;
        entry.onWritten();
        entry.resolve();
      }
    }
    this.#pump = undefined;
  }

  async #writeGroup(group: readonly Entry[]): Promise<void> {
    const file = await this.#openFile(group[0]!.file);
    let parts = group.flatMap((entry) => entry.parts);
    while (parts.length > 0) {
      const taken = await file.handle.writev(parts.slice(0, maxPartsPerWrite));
      if (taken === 0) throw new Error("the disk took no bytes");
      file.pendingBytes += taken;
      parts = skipBytes(parts, taken);
    }
    this.#counts.writes++;
    if (this.#options.fsync === "always") await this.#sync(file);
    file.goodBytes = file.pendingBytes;
    this.#sizes.set(file.number, file.goodBytes);
    if (this.#options.fsync === "interval") this.#syncLater(file);
  }

  async #openFile(number: number): Promise<OpenFile> {
    const last = this.#open;
    if (last?.number === number) return last;
    this.#open = undefined;
    if (last !== undefined) this.#own(this.#retire(last));
    const handle = await this.#disk.create(walPath(this.#options.dir, number));
    const file = { number, handle, goodBytes: 0, pendingBytes: 0, syncPlanned: false };
    this.#open = file;
    this.#sizes.set(number, 0);
    if (this.#options.fsync !== "never") await this.#disk.syncDir(this.#options.dir);
    return file;
  }

  /** Gives up all that waits: told to the owner first, and cut off the file so that no replay brings it back. */
  async #fail(error: unknown, group: readonly Entry[]): Promise<void> {
    this.#counts.failures++;
    const lost = [...group, ...this.#queue.splice(0)];
    for (const entry of lost) this.#queuedBytes -= entry.bytes;
    this.#beginFile();
    const refusal = refusalOf(error);
    if (refusal.full) this.#refusal = refusal.error;
    this.#onAbort(refusal.error);
    this.#options.onError(error);
    for (const entry of lost) entry.reject(refusal.error);
    const file = this.#open;
    this.#open = undefined;
    if (file === undefined) return;
    try {
      await file.handle.truncate(file.goodBytes);
      await this.#retire(file);
    } catch (repairError) {
      this.#options.onError(repairError);
    }
  }

  #syncLater(file: OpenFile): void {
    if (file.syncPlanned) return;
    file.syncPlanned = true;
    const wait = (this.#options.sleep ?? sleep)(this.#options.fsyncIntervalMs, this.#abort.signal);
    this.#own(
      wait.then(
        async () => {
          file.syncPlanned = false;
          if (this.#open === file) await this.#sync(file);
        },
        () => undefined,
      ),
    );
  }

  async #sync(file: OpenFile): Promise<void> {
    await file.handle.datasync();
    this.#counts.syncs++;
  }

  /** Syncs a file that gets no more records and closes it. */
  async #retire(file: OpenFile): Promise<void> {
    try {
      if (this.#options.fsync !== "never" || this.#closed) await this.#sync(file);
    } finally {
      await file.handle.close();
    }
  }

  /** Keeps a task that nobody waits for until the end, and reports its failure. */
  #own(task: Promise<void>): void {
    const owned = task
      .catch((error: unknown) => {
        this.#counts.failures++;
        this.#options.onError(error);
      })
      .finally(() => this.#background.delete(owned));
    this.#background.add(owned);
  }
}

interface Entry {
  readonly file: number;
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  readonly onWritten: () => void;
  readonly resolve: () => void;
  readonly reject: (error: SkaldError) => void;
}

interface OpenFile {
  readonly number: number;
  readonly handle: WalDiskFile;
  /** Bytes that belong to records whose writers were told so. */
  goodBytes: number;
  pendingBytes: number;
  syncPlanned: boolean;
}

/** What the kernel takes in one call. */
const maxPartsPerWrite = 1024;
const maxGroupBytes = 16 * 1024 * 1024;

/** Takes entries of one file off the queue: at least one, then as many as go into one write. */
function takeGroup(queue: Entry[]): Entry[] {
  const file = queue[0]!.file;
  let count = 0;
  let bytes = 0;
  let parts = 0;
  for (const entry of queue) {
    bytes += entry.bytes;
    parts += entry.parts.length;
    const full = bytes > maxGroupBytes || parts > maxPartsPerWrite;
    if (entry.file !== file || (full && count > 0)) break;
    count++;
  }
  return queue.splice(0, count);
}

/** The parts without their first bytes. */
function skipBytes(parts: readonly Uint8Array[], count: number): Uint8Array[] {
  let skipped = 0;
  for (const [i, part] of parts.entries()) {
    if (skipped + part.byteLength > count) {
      return [part.subarray(count - skipped), ...parts.slice(i + 1)];
    }
    skipped += part.byteLength;
  }
  return [];
}

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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
