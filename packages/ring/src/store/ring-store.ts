/**
 * Where the members of rings are kept: for each ring a table from the id of an instance to a text that it writes itself. A
 * store that does not answer throws within a bounded time and is asked again later; it may come back with nothing in it.
 */
export interface RingStore {
  /** All fields of a ring; none of a ring that nobody wrote to. Throws when the store cannot be read. */
  read(ring: string): Promise<ReadonlyMap<string, string>>;
  /** Sets the field of an instance. Those who watch are told where it is a piece of `news` and not just a heartbeat. */
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
