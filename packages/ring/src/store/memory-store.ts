import type { RingStore } from "./ring-store.js";

/** Rings of one process, shared by all that are given the store. */
export class MemoryRingStore implements RingStore {
  readonly #rings = new Map<string, Map<string, string>>();
  readonly #watchers = new Map<string, Set<() => void>>();

  async read(ring: string): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#rings.get(ring));
  }

  async write(
    ring: string,
    id: string,
    text: string,
    { news }: { readonly news: boolean },
  ): Promise<void> {
    const fields = this.#rings.get(ring) ?? new Map<string, string>();
    this.#rings.set(ring, fields);
    fields.set(id, text);
    if (news) this.#tell(ring);
  }

  async remove(ring: string, id: string): Promise<void> {
    if (this.#rings.get(ring)?.delete(id) === true) this.#tell(ring);
  }

  watch(ring: string, onNews: () => void): () => void {
    const watchers = this.#watchers.get(ring) ?? new Set();
    this.#watchers.set(ring, watchers);
    // A wrapper for each call: the same function may watch twice.
    const watcher = () => onNews();
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
    };
  }

  async close(): Promise<void> {
    this.#watchers.clear();
  }

  #tell(ring: string): void {
    for (const watcher of this.#watchers.get(ring) ?? []) watcher();
  }
}
