import { nodeWalDisk, type WalDisk, walNumbers, walPath } from "./disk.js";
import { type WalEnd, type WalFrame, WalFrames } from "./frame.js";
import { decodeWalRecord, type WalRecord } from "./record.js";
import type { WalPosition } from "./wal.js";

export interface WalReplayOptions {
  readonly dir: string;
  /** Gets each record in the order it was written; the next one waits for it. */
  readonly onRecord: (record: WalRecord, position: WalPosition) => Promise<void> | void;
  /** Told of each thing that was not as written. */
  readonly onDamage: (damage: WalDamage) => void;
  readonly disk?: WalDisk;
}

/**
 * `torn`: a record at the end of a file that was being written when the process died; it was never acknowledged and is cut
 * off. `corrupt`: records stand behind a damaged one; the rest of the file is set aside as `<file>.corrupt`.
 * `unreadable`: one record is whole but cannot be made sense of; it is left out.
 */
export interface WalDamage {
  readonly kind: "torn" | "corrupt" | "unreadable";
  readonly path: string;
  readonly offset: number;
  readonly lostBytes: number;
  readonly error?: unknown;
}

export interface WalReplayResult {
  readonly files: number;
  readonly records: number;
  readonly bytes: number;
}

/** Reads all log files of the directory, one at a time, and repairs what it cannot read. */
export async function replayWal(options: WalReplayOptions): Promise<WalReplayResult> {
  const disk = options.disk ?? nodeWalDisk;
  const total = { files: 0, records: 0, bytes: 0 };
  for (const file of walNumbers(await disk.list(options.dir))) {
    const path = walPath(options.dir, file);
    const bytes = await disk.read(path);
    const frames = new WalFrames(bytes);
    for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
      const record = decodeFrame(frame, path, options);
      if (record !== undefined) await options.onRecord(record, { file, offset: frame.offset });
      total.records++;
    }
    total.files++;
    total.bytes += bytes.length;
    await repair(options, disk, path, bytes, frames.end());
  }
  return total;
}

function decodeFrame(
  frame: WalFrame,
  path: string,
  options: WalReplayOptions,
): WalRecord | undefined {
  try {
    return decodeWalRecord(frame.type, frame.payload);
  } catch (error) {
    const lostBytes = frame.end - frame.offset;
    options.onDamage({ kind: "unreadable", path, offset: frame.offset, lostBytes, error });
    return undefined;
  }
}

async function repair(
  options: WalReplayOptions,
  disk: WalDisk,
  path: string,
  bytes: Buffer,
  end: WalEnd,
): Promise<void> {
  if (end.kind === "clean") return;
  const lostBytes = bytes.length - end.offset;
  options.onDamage({ kind: end.kind, path, offset: end.offset, lostBytes });
  if (end.kind === "corrupt") await disk.write(`${path}.corrupt`, bytes.subarray(end.offset));
  await disk.truncate(path, end.offset);
}
