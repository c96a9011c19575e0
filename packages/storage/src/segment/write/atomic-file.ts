import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "../../files.js";

/**
 * A file that appears under its name only when its bytes are complete and on disk: written beside it as `<path>.tmp`,
 * synced unless `sync` is false, and renamed. Whoever relies on the name syncs the directory. Blocks the thread; meant for workers.
 */
export class AtomicFile {
  readonly path: string;
  readonly #temporaryPath: string;
  readonly #sync: boolean;
  #fd: number | undefined;
  #sizeBytes = 0;

  constructor(path: string, options: { readonly sync?: boolean } = {}) {
    this.path = path;
    this.#sync = options.sync ?? true;
    this.#temporaryPath = `${path}.tmp`;
    this.#fd = openSync(this.#temporaryPath, "w");
  }

  /** Bytes written so far: the place of the next write. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  write(bytes: Uint8Array): void {
    const fd = this.#openFd();
    let done = 0;
    while (done < bytes.byteLength) done += writeSync(fd, bytes, done, bytes.byteLength - done);
    this.#sizeBytes += bytes.byteLength;
  }

  finish(): void {
    const fd = this.#openFd();
    if (this.#sync) fsyncSync(fd);
    closeSync(fd);
    this.#fd = undefined;
    renameSync(this.#temporaryPath, this.path);
  }

  /** Gives up and removes what was written. */
  abort(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    rmSync(this.#temporaryPath, { force: true });
  }

  #openFd(): number {
    if (this.#fd === undefined) throw new Error(`segment ${this.path} is closed already`);
    return this.#fd;
  }
}
