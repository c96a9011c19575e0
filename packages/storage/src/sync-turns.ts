import { Semaphore } from "@skald/runtime";

/**
 * Syncs that run at a time, beside that of the log's open file. Node has four threads for calls of the file system, and a
 * sync of a slow disk holds one for seconds: with two here and one there, writes to the log always find a thread.
 */
const maxSyncs = 2;

const turns = new Semaphore(maxSyncs);

/** Runs a sync of a file or a directory in its turn. Whatever is synced again and again while the process runs goes through here. */
export function syncInTurn(sync: () => Promise<void>): Promise<void> {
  return turns.run(sync);
}
