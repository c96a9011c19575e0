const shardCount = 256;

/** Numbers by text, in many small maps: one map of a million texts stops the thread for long each time it grows. */
export class TextNumbers {
  readonly #shards = Array.from({ length: shardCount }, () => new Map<string, number>());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(text: string): number | undefined {
    return this.#shardOf(text).get(text);
  }

  /** The text must not be there yet. */
  add(text: string, number: number): void {
    this.#shardOf(text).set(text, number);
    this.#size++;
  }

  delete(text: string): void {
    if (this.#shardOf(text).delete(text)) this.#size--;
  }

  /** Label texts differ anywhere, so every third character counts. */
  #shardOf(text: string): Map<string, number> {
    let hash = text.length;
    for (let i = 2; i < text.length; i += 3) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
    return this.#shards[(hash ^ (hash >>> 13)) & (shardCount - 1)] as Map<string, number>;
  }
}
