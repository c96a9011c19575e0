import { refuseNewerWal, WalFrames, walVoidType } from "./frame.js";
import { decodeWalRecord, type WalRecord } from "./record.js";

/** Damage of a log file, as a replay would find it. */
export interface WalFault {
  /** `torn`: the last record was being written; it was never acknowledged. */
  readonly kind: "torn" | "corrupt" | "unreadable";
  readonly offset: number;
  readonly bytes: number;
  readonly message?: string;
}

export interface WalVisit {
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
