/** Texts that are kept in one map. */
const maxSingle = 4096;
const shardCount = 256;

/**
 * Numbers by text: a map while they are few, as with most tenants; many small maps from then on, because one map of a million
 * texts stops the thread for long each time it grows.
 */
export class TextNumbers {
  #single: Map<string, number> | undefined = new Map();
  #shards: readonly Map<string, number>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(text: string): number | undefined {
    return this.#mapOf(text).get(text);
  }

  /** The text must not be there yet. */
  add(text: string, number: number): void {
    if (this.#single?.size === maxSingle) this.#split(this.#single);
    this.#mapOf(text).set(text, number);
    this.#size++;
  }

  delete(text: string): void {
    if (this.#mapOf(text).delete(text)) this.#size--;
  }

  #split(all: Map<string, number>): void {
    this.#single = undefined;
    this.#shards = Array.from({ length: shardCount }, () => new Map<string, number>());
    for (const [text, number] of all) this.#mapOf(text).set(text, number);
  }

  #mapOf(text: string): Map<string, number> {
    return this.#single ?? (this.#shards[shardOf(text)] as Map<string, number>);
  }
}

/** Label texts differ anywhere, so every third character counts. */
function shardOf(text: string): number {
  let hash = text.length;
  for (let i = 2; i < text.length; i += 3) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 13)) & (shardCount - 1);
}
