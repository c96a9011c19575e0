import type { WalPosition } from "@skald/storage";

/** Names that a file has already may take this part of it. */
const repeatShare = 1 / 8;

/**
 * Which streams of a tenant the log has named. A push names its streams by number, so each stream is named before its first
 * use in a file, and again as often as that costs little: then most pushes are readable by themselves, whatever before
 * them is damaged.
 */
export class NamedStreams {
  #file = 0;
  /** By stream: the file that has named it last. */
  #files = new Uint32Array(0);
  #repeatedBytes = 0;

  /** Whether the last file that has named any stream has named this one. */
  isNamed(stream: number): boolean {
    return stream < this.#files.length && this.#files[stream] === this.#file;
  }

  /** Whether to name a stream before a record that goes to a place of the log; takes for granted that it is done. */
  needsName(stream: number, nameBytes: number, { file, offset }: WalPosition): boolean {
    if (file !== this.#file) {
      this.#file = file;
      this.#repeatedBytes = 0;
    }
    if (this.isNamed(stream)) {
      if (this.#repeatedBytes + nameBytes > repeatShare * offset) return false;
      this.#repeatedBytes += nameBytes;
      return true;
    }
    if (stream >= this.#files.length) {
      const files = new Uint32Array(Math.max(8, 2 * this.#files.length, stream + 1));
      files.set(this.#files);
      this.#files = files;
    }
    this.#files[stream] = file;
    return true;
  }
}
