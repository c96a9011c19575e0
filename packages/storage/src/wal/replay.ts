import { nodeWalDisk, type WalDisk, walNumbers, walPath } from "./disk.js";
import {
  encodeWalPatch,
  refuseNewerWal,
  type WalFrame,
  WalFrames,
  type WalGap,
  walVoidType,
} from "./frame.js";
import { decodeWalRecord, type StreamsRecord, type WalRecord, walRecordTypes } from "./record.js";
import type { WalPosition } from "./wal.js";

interface WalReplayOptions {
  readonly dir: string;
  /** Files from this number on are not read, because they are being written. */
  readonly endFile?: number;
  /** Gets each record in the order it was written; the next one waits for it. */
  readonly onRecord: (record: WalRecord, position: WalPosition) => Promise<void> | void;
  /**
   * Behind damage, which may have swallowed names: gets those that the rest of the file has, ahead of the records that
   * need them. A number names one stream within a file, so it matters only for numbers without a name.
   */
  readonly onNamesAhead?: (record: StreamsRecord, file: number) => void;
  /** Called for each damage. */
  readonly onDamage: (damage: WalDamage) => void;
  readonly disk?: WalDisk;
}

/**
 * `torn`: a record at the end of a file was being written when the process died; it was never acknowledged and is cut off.
 * `corrupt`: damage before whole records; the damaged bytes are set aside as `<file>.<offset>.corrupt`, and the replay goes
 * on behind them. `unreadable`: one record is whole but cannot be decoded; it is left out.
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

/**
 * Reads all log files of the directory, one at a time, and repairs what it cannot read. Throws `newer_version` at a file that a
 * later program wrote.
 */
export async function replayWal(options: WalReplayOptions): Promise<WalReplayResult> {
  const disk = options.disk ?? nodeWalDisk;
  const total = { files: 0, records: 0, bytes: 0 };
  const { endFile = Number.POSITIVE_INFINITY } = options;
  for (const file of walNumbers(await disk.list(options.dir))) {
    if (file >= endFile) break;
    const path = walPath(options.dir, file);
    const bytes = await disk.read(path);
    refuseNewerWal(path, bytes);
    const frames = new WalFrames(bytes);
    for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
      if (frames.gaps.at(-1)?.end === frame.offset) {
        readNamesAhead(file, frame, frames.rest(), options);
      }
      if (frame.type === walVoidType) continue;
      const record = decodeFrame(frame, path, options);
      const waits = record && options.onRecord(record, { file, offset: frame.offset });
      if (waits !== undefined) await waits;
      total.records++;
    }
    total.files++;
    total.bytes += bytes.length;
    await repair(options, disk, path, { bytes, frames });
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

function readNamesAhead(
  file: number,
  first: WalFrame,
  rest: WalFrames,
  options: WalReplayOptions,
): void {
  for (let frame: WalFrame | undefined = first; frame !== undefined; frame = rest.next()) {
    if (frame.type !== walRecordTypes.streams) continue;
    try {
      options.onNamesAhead?.(decodeWalRecord(frame.type, frame.payload) as StreamsRecord, file);
    } catch {
      // The damage is reported when the turn of the record comes.
    }
  }
}

async function repair(
  options: WalReplayOptions,
  disk: WalDisk,
  path: string,
  { bytes, frames }: { bytes: Buffer; frames: WalFrames },
): Promise<void> {
  for (const gap of frames.gaps) {
    await setAside(options, disk, path, bytes, gap);
    await disk.patch(path, gap.offset, encodeWalPatch(bytes, frames.marker, gap));
  }
  const { kind, offset } = frames.end();
  if (kind === "clean") return;
  if (kind === "corrupt") {
    await setAside(options, disk, path, bytes, { offset, end: bytes.length });
  } else {
    options.onDamage({ kind, path, offset, lostBytes: bytes.length - offset });
  }
  await disk.truncate(path, offset);
}

async function setAside(
  options: WalReplayOptions,
  disk: WalDisk,
  path: string,
  bytes: Buffer,
  { offset, end }: WalGap,
): Promise<void> {
  options.onDamage({ kind: "corrupt", path, offset, lostBytes: end - offset });
  await disk.write(`${path}.${offset}.corrupt`, bytes.subarray(offset, end));
}

/** Damage of a log file, as a replay would find it. */
export interface WalFault {
  /** `torn`: the last record was being written; it was never acknowledged. */
  readonly kind: "torn" | "corrupt" | "unreadable";
  readonly offset: number;
  readonly bytes: number;
  readonly message?: string;
}

interface WalVisit {
  /** Gets each record; those that a replay made void have none. */
  readonly onRecord?: (record: WalRecord | "void", offset: number, bytes: number) => void;
  readonly onFault: (fault: WalFault) => void;
}

/**
 * Reads the bytes of a log file and changes nothing; yields where each record ends. Throws `newer_version`, with the name, for
 * one that a later program wrote.
 */
export function* inspectWal(name: string, bytes: Buffer, visit: WalVisit): Generator<number, void> {
  refuseNewerWal(name, bytes);
  const frames = new WalFrames(bytes);
  let gaps = 0;
  for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
    for (; gaps < frames.gaps.length; gaps++) {
      const { offset, end } = frames.gaps[gaps]!;
      visit.onFault({ kind: "corrupt", offset, bytes: end - offset });
    }
    const { type, payload, offset, end } = frame;
    try {
      const record = type === walVoidType ? "void" : decodeWalRecord(type, payload);
      visit.onRecord?.(record, offset, end - offset);
    } catch (error) {
      const { message } = error as Error;
      visit.onFault({ kind: "unreadable", offset, bytes: end - offset, message });
    }
    yield end;
  }
  const { kind, offset } = frames.end();
  if (kind !== "clean") visit.onFault({ kind, offset, bytes: bytes.length - offset });
}
