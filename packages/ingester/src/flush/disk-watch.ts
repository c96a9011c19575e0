import { join } from "node:path";
import { SkaldError } from "@skald/model";
import type { DiskSpace, WalDisk } from "@skald/storage";

export interface DiskWatchOptions {
  /** Where segments are written. */
  readonly dataDir: string;
  /** Every directory that the ingester writes to, `dataDir` among them. */
  readonly dirs: readonly string[];
  readonly disk: WalDisk;
  /** Free space of the disk of `dataDir` below which pushes are refused, or a twentieth of that disk if that is less. */
  readonly minFreeBytes: number;
  /** Bytes on their way to the disk that it does not know of yet. */
  readonly queuedBytes: () => number;
}

/** How much of a small disk must be free. */
const minFreePart = 1 / 20;
/** A refused push may come again when the disk was looked at again. */
const retryAfterSeconds = 5;

/**
 * Keeps an eye on the disk, so that what was acknowledged can always be sealed: pushes are refused while there is no more
 * free than a segment may need. Counts what is written between two looks.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  /** Bytes that may still be written before pushes are refused, as far as known. */
  #spareBytes = Number.POSITIVE_INFINITY;
  #space: DiskSpace = { totalBytes: 0, freeBytes: 0 };
  #unwritable: string | undefined;
  #checking: Promise<void> | undefined;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Why pushes must be refused now. */
  get refusal(): SkaldError | undefined {
    const why = this.#unwritable ?? (this.#spareBytes < 0 ? this.#tooFull() : undefined);
    return why === undefined
      ? undefined
      : new SkaldError("unavailable", why, { retryAfterSeconds });
  }

  /** Why no push can be taken until somebody mends a directory. */
  get unwritable(): string | undefined {
    return this.#unwritable;
  }

  /** Takes notice of bytes that were written. */
  wrote(bytes: number): void {
    this.#spareBytes -= bytes;
    if (this.#spareBytes < 0) void this.check();
  }

  /** Looks at the disk; a look that runs already serves as well. Never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #check(): Promise<void> {
    const { dataDir, dirs, disk, minFreeBytes, queuedBytes } = this.#options;
    try {
      this.#space = await disk.space(dataDir);
      const { freeBytes, totalBytes } = this.#space;
      const floorBytes = Math.min(minFreeBytes, minFreePart * totalBytes);
      this.#spareBytes = freeBytes - floorBytes - queuedBytes();
      for (const dir of dirs) await tryWriting(dir, disk);
      this.#unwritable = undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#unwritable = isFull(error) ? undefined : `a directory cannot be written: ${why}`;
      if (isFull(error)) this.#spareBytes = -1;
    }
  }

  #tooFull(): string {
    const mib = (bytes: number) => `${Math.max(0, Math.floor(bytes / 1024 / 1024))} MiB`;
    const { dataDir, minFreeBytes } = this.#options;
    const { freeBytes, totalBytes } = this.#space;
    const floor = mib(Math.min(minFreeBytes, minFreePart * totalBytes));
    return `the disk of ${dataDir} is full: ${mib(freeBytes)} are free, pushes are refused below ${floor}, so that what was taken can be sealed; free space to go on`;
  }
}

async function tryWriting(dir: string, disk: WalDisk): Promise<void> {
  const path = join(dir, "writable");
  await disk.write(path, new Uint8Array(1));
  await disk.remove(path);
}

function isFull(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOSPC" || code === "EDQUOT";
}
