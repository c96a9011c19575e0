import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Batch, BatchSource } from "@skald/model";
import { nodeWalDisk, type WalDisk, type WalDiskFile } from "../wal/disk.js";
import type { PushBodyRecord, WalRecord } from "../wal/record.js";
import { replayWal, type WalDamage } from "../wal/replay.js";
import { Wal, type WalOptions } from "../wal/wal.js";

/** An empty directory; the environment of the tests removes it after those of the file. */
export function walDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "skald-wal-"));
}

/** A log with small bounds; `errors` gets what it reports. */
export async function openWal(dir: string, options: Partial<WalOptions> = {}) {
  const errors: unknown[] = [];
  const wal = await Wal.open({
    dir,
    fsync: "interval",
    fsyncIntervalMs: 100,
    maxFileBytes: 1 << 20,
    maxQueuedBytes: 1 << 20,
    diskFullThreshold: 0,
    onError: (error) => errors.push(error),
    ...options,
  });
  return { wal, errors };
}

/** Everything that a replay of the directory tells. */
export async function replay(dir: string) {
  const records: WalRecord[] = [];
  const damages: WalDamage[] = [];
  const result = await replayWal({
    dir,
    onRecord: (record) => void records.push(record),
    onDamage: (damage) => void damages.push(damage),
  });
  return { records, damages, result };
}

/** A record of a push with this body. */
export function push(text: string, source: Partial<BatchSource> = {}): PushBodyRecord {
  return {
    kind: "push_body",
    tenant: "täst",
    heads: [
      { day: 20_000, id: "h1" },
      { day: -3, id: "h2" },
    ],
    ordinals: Uint32Array.of(0, 3),
    streams: Uint32Array.of(17, 4),
    levels: Uint8Array.of(1, 2, 255),
    source: {
      format: "json",
      encoding: "gzip",
      body: Buffer.from(text),
      dropped: Uint32Array.of(2, 5),
      ...source,
    },
  };
}

/** The bodies among the records, as text. */
export function bodies(records: readonly WalRecord[]): string[] {
  return records.flatMap((record) =>
    record.kind === "push_body" ? [Buffer.from(record.source.body).toString()] : [],
  );
}

/** A record as tests compare it: typed arrays as lists, bytes as text, the rows of each range as objects. */
export function plainRecord(record: WalRecord): object {
  switch (record.kind) {
    case "streams":
      return record;
    case "push_body": {
      const { ordinals, streams, levels, source } = record;
      const body = Buffer.from(source.body).toString();
      return {
        ...record,
        ordinals: [...ordinals],
        streams: [...streams],
        levels: [...levels],
        source: { ...source, body, dropped: [...source.dropped] },
      };
    }
    case "push_columns":
    case "forward": {
      const { kind, tenant, heads, ranges, batch } = record;
      const plain = ranges.map(({ stream, rowFrom, rowTo }) => ({
        stream,
        rows: Array.from({ length: rowTo - rowFrom }, (_, i) => plainRow(batch, rowFrom + i)),
      }));
      return { kind, tenant, heads, ranges: plain };
    }
  }
}

function plainRow(batch: Batch, row: number) {
  const text = (start: number, length: number) =>
    Buffer.from(batch.bytes.subarray(start, start + length)).toString();
  const metadata: Record<string, string> = {};
  for (let pair = batch.metaStart[row]!; pair < batch.metaStart[row + 1]!; pair++) {
    const name = batch.metaNames[batch.metaName[pair]!]!;
    metadata[name] = text(batch.metaValueStart[pair]!, batch.metaValueLength[pair]!);
  }
  return {
    seconds: batch.seconds[row],
    nanos: batch.nanos[row],
    line: text(batch.lineStart[row]!, batch.lineLength[row]!),
    level: batch.levels[row],
    metadata,
  };
}

/** A disk whose syncs of files and directories end when they are told to; `started` has those that began, by path. */
export function slowDisk() {
  const started: string[] = [];
  const running = new Map<string, () => void>();
  const hold = async (path: string): Promise<void> => {
    started.push(path);
    if (running.has(path)) throw new Error(`two syncs of ${path} at a time`);
    await new Promise<void>((resolve) => running.set(path, resolve));
    running.delete(path);
  };
  const create = async (path: string): Promise<WalDiskFile> => ({
    ...(await nodeWalDisk.create(path)),
    datasync: () => hold(path),
  });
  return {
    disk: { ...nodeWalDisk, create, syncDir: hold } as WalDisk,
    started,
    running,
    /** Ends what runs. */
    release: () => {
      for (const end of running.values()) end();
    },
  };
}

/** A disk whose next writes can be told to fail or to be cut short. */
export function failingDisk() {
  const plan: { take?: number; code?: string }[] = [];
  let used = 0.5;
  let onSync = (): void => undefined;
  const synced = new Promise<void>((resolve) => {
    onSync = resolve;
  });
  const wrap = (file: WalDiskFile): WalDiskFile => ({
    ...file,
    writev: async (parts) => {
      const step = plan.shift();
      if (step?.take !== undefined) {
        return file.writev([Buffer.concat(parts).subarray(0, step.take)]);
      }
      if (step?.code !== undefined) throw Object.assign(new Error("no"), { code: step.code });
      return file.writev(parts);
    },
    datasync: async () => {
      await file.datasync();
      onSync();
    },
  });
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => wrap(await nodeWalDisk.create(path)),
    space: async () => ({ totalBytes: 100, freeBytes: 100 * (1 - used) }),
  };
  const setUsed = (fraction: number) => {
    used = fraction;
  };
  return { disk, plan, synced, setUsed };
}
