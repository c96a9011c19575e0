/** Which log files heads have their first rows in: those and all behind them cannot be cut. */
export class PinnedFiles {
  /** Heads by their first file. */
  readonly #heads = new Map<number, number>();

  /** The oldest one; Infinity when there is none. */
  get first(): number {
    return Math.min(...this.#heads.keys());
  }

  pin(file: number): void {
    this.#heads.set(file, (this.#heads.get(file) ?? 0) + 1);
  }

  /** Takes a head's pin back; of no consequence for a head that has none. */
  unpin(file: number): void {
    const left = (this.#heads.get(file) ?? 0) - 1;
    if (left > 0) this.#heads.set(file, left);
    else this.#heads.delete(file);
  }
}
