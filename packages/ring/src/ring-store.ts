/**
 * Where the members of rings are kept: for each ring a table from the id of an instance to a text that it writes itself. A
 * store that does not answer throws within a bounded time and is asked again later; it may come back with nothing in it.
 */
export interface RingStore {
  /** Reads all fields of a ring. A ring that nobody wrote to has none. Throws when the store cannot be read. */
  read(ring: string): Promise<ReadonlyMap<string, string>>;
  /** Sets the field of an instance. With `news`, which a heartbeat is not, watchers hear of it. */
  write(ring: string, id: string, text: string, options: { readonly news: boolean }): Promise<void>;
  /** Deletes a field; it need not be there. */
  remove(ring: string, id: string): Promise<void>;
  /**
   * Calls back when there is news of a ring, also when some may have been missed. Nobody may rely on it: readers ask from
   * time to time too. Returns what ends it.
   */
  watch(ring: string, onNews: () => void): () => void;
  /** Lets go of connections; calls after it fail. */
  close(): Promise<void>;
}

/** Rings of one process. All users of the store share them. */
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
    // Each call gets its own wrapper, because the same function may watch twice.
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
