import type { SkaldError } from "@skald/model";
import type { Wal, WalPosition, WalStats } from "@skald/storage";

/** The write-ahead log as the ingester uses it. */
export type PushLog = Pick<
  Wal,
  | "onAbort"
  | "onUnsynced"
  | "refusal"
  | "reserve"
  | "tryReserve"
  | "nextFile"
  | "offset"
  | "append"
  | "rotate"
  | "sync"
  | "canCut"
  | "cut"
  | "firstFile"
  | "bytesSince"
  | "checkDisk"
  | "stats"
  | "close"
>;

/** In the place of a log that is switched off: rows are visible at once, and gone when the process is. */
export const noLog: PushLog = {
  onAbort: (_: (error: SkaldError) => void) => undefined,
  onUnsynced: (_: (file: number) => void) => undefined,
  refusal: undefined,
  reserve: () => Promise.resolve(() => undefined),
  tryReserve: () => () => undefined,
  nextFile: () => 1,
  offset: 0,
  append: (_, onWritten) => {
    onWritten();
    const position: WalPosition = { file: 1, offset: 0 };
    return { position, written: Promise.resolve() };
  },
  rotate: () => undefined,
  sync: () => Promise.resolve(),
  canCut: () => true,
  cut: () => Promise.resolve(0),
  firstFile: Number.POSITIVE_INFINITY,
  bytesSince: () => 0,
  checkDisk: () => Promise.resolve(),
  stats: (): WalStats => ({ files: 0, bytes: 0, queuedBytes: 0, writes: 0, syncs: 0, failures: 0 }),
  close: () => Promise.resolve(),
};
