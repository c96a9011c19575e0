import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { crc32 } from "@skald/kernels";
import { errorCodeOf, refuseNewerVersion } from "@skald/model";
import { Cluster } from "./miner.js";
import type { PatternStore } from "./pattern-store.js";

const magic = 0x504b_5331;
/** The version of the files that this code writes, and the newest that it reads. */
const patternVersion = 1;
const headBytes = 12;
/** An older file is deleted, because it may tell of lines of delete requests that are forgotten by now. */
const maxAgeMs = 24 * 3_600_000;

/** The saved miner of a stream and level. */
export interface SavedMiner {
  readonly tenant: string;
  readonly stream: string;
  readonly level: string;
  readonly clusters: readonly SavedCluster[];
}

export interface SavedCluster {
  readonly shape: number;
  readonly isInner: boolean;
  readonly hashes: number[];
  readonly words: string[];
  readonly gaps: string[];
  readonly times: number[];
  readonly counts: number[];
}

/** Writes all patterns to a file that appears once it is complete and synced: magic, version and CRC-32 (u32 LE each), JSON. */
export function savePatterns(store: PatternStore, path: string): void {
  const miners: SavedMiner[] = [];
  for (const { tenant, stream, level, miner } of store.miners()) {
    const clusters = Array.from(miner.clusters, (cluster) => ({
      shape: miner.shapeOf(cluster),
      isInner: cluster.isInner,
      hashes: Array.from(cluster.hashes),
      words: cluster.words,
      gaps: cluster.gaps,
      times: cluster.times,
      counts: cluster.counts,
    }));
    miners.push({ tenant, stream, level, clusters });
  }
  const body = Buffer.from(JSON.stringify(miners));
  const head = Buffer.alloc(headBytes);
  const words = [magic, patternVersion, crc32(body)];
  for (const [i, word] of words.entries()) head.writeUInt32LE(word, 4 * i);
  const temporary = `${path}.tmp`;
  writeFileSync(temporary, Buffer.concat([head, body]), { flush: true });
  renameSync(temporary, path);
}

/**
 * Reads them back into an empty store; false when there is no such file, or it is damaged or older than a day. Throws `newer_version` for one that a
 * later program wrote.
 */
export function loadPatterns(store: PatternStore, path: string): boolean {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return false;
  }
  let miners: readonly SavedMiner[];
  try {
    miners = decodePatterns(path, bytes);
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    return false;
  }
  if (Date.now() - statSync(path).mtimeMs > maxAgeMs) {
    rmSync(path, { force: true });
    return false;
  }
  for (const { tenant, stream, level, clusters } of miners) {
    const miner = store.minerOf(tenant, stream, level);
    for (const saved of clusters) {
      const cluster = new Cluster({ ...saved, hashes: Uint32Array.from(saved.hashes) });
      cluster.times.push(...saved.times);
      cluster.counts.push(...saved.counts);
      miner.restore(cluster, saved.shape);
    }
  }
  return true;
}

/** True for bytes that begin like such a file. */
export function isPatternFile(bytes: Buffer): boolean {
  return bytes.length >= headBytes && bytes.readUInt32LE(0) === magic;
}

/** Throws `newer_version` when a later program wrote the file. The file may be missing. */
export function refuseNewerPatterns(path: string): void {
  const head = Buffer.alloc(headBytes);
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return;
  }
  try {
    if (readSync(fd, head) === headBytes) refuseNewerHead(path, head);
  } finally {
    closeSync(fd);
  }
}

function refuseNewerHead(name: string, head: Buffer): void {
  if (!isPatternFile(head)) return;
  refuseNewerVersion(name, { found: head.readUInt32LE(4), known: patternVersion });
}

/** The contents of such a file. Throws for one that is damaged, and `newer_version` for one that a later program wrote. */
export function decodePatterns(name: string, bytes: Buffer): readonly SavedMiner[] {
  if (!isPatternFile(bytes)) throw new Error("the file has no patterns");
  refuseNewerHead(name, bytes);
  const version = bytes.readUInt32LE(4);
  if (version !== patternVersion)
    throw new Error(`its version is ${version}, not ${patternVersion}`);
  const body = bytes.subarray(headBytes);
  if (bytes.readUInt32LE(8) !== crc32(body)) throw new Error("it does not match its checksum");
  return JSON.parse(String(body)) as SavedMiner[];
}
