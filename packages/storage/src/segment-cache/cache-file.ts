import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type FileHandle, open, readdir, rm, stat } from "../files.js";
import type { SyncRangeReader } from "../segment/range-reader.js";
import { withFile } from "../syncs.js";
import { type CachedObject, slotBytes } from "./cached-segment.js";

const suffix = ".slots";
/** "SKSL", the last word of a file. */
const magic = 0x4c53_4b53;
/** The length of the key, and the magic word. */
const tailBytes = 8;

/** A file of the cache that was found at the start. */
export interface FoundFile {
  readonly path: string;
  /** The key of its object. */
  readonly key: string;
  /** The hash of that key, and of the name of its store. */
  readonly hash: string;
  readonly usedMs: number;
}

/**
 * One object in the cache: its slots, each at its place, behind the last a byte per slot that says whether it is there, and at
 * the end the object's key, which tells a later process what the file is of, with its length (u32 LE) and a magic word. The byte is written after the slot, so a process that dies in between loses the slot. The checksums of the segment reveal
 * what a power cut left half written.
 */
export class CacheFile {
  readonly object: CachedObject;
  readonly #held: Uint8Array;
  #handle: Promise<FileHandle> | undefined;

  constructor(object: CachedObject) {
    this.object = object;
    this.#held = new Uint8Array(object.slots);
  }

  get slotCount(): number {
    return this.#held.length;
  }

  get heldSlots(): number {
    return this.#held.reduce((sum, flag) => sum + flag, 0);
  }

  has(slot: number): boolean {
    return this.#held[slot] === 1;
  }

  /** Writes whole slots (the last one of the object may be short) and returns how many of them are new. */
  async write(slot: number, bytes: Uint8Array): Promise<number> {
    this.#handle ??= open(this.object.path, "r+");
    const handle = await this.#handle;
    await handle.write(bytes, 0, bytes.byteLength, slot * slotBytes);
    const count = Math.ceil(bytes.byteLength / slotBytes);
    const flags = new Uint8Array(count).fill(1);
    await handle.write(flags, 0, count, this.slotCount * slotBytes + slot);
    let added = 0;
    for (let i = 0; i < count; i++) added += 1 - Atomics.exchange(this.#held, slot + i, 1);
    return added;
  }

  /** Marks the file as used, for later processes. */
  async touch(nowMs: number): Promise<void> {
    await withFile(this.object.path, "r+", (file) => file.utimes(nowMs / 1000, nowMs / 1000));
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await (await handle)?.close();
  }

  async remove(): Promise<void> {
    await this.close().catch(() => {});
    await rm(this.object.path, { force: true });
  }
}

/** Makes the empty file of an object. Its name is new: threads may still have an older file of the object open. */
export async function createCacheFile(
  directory: string,
  hash: string,
  { key, sizeBytes }: Pick<CachedObject, "key" | "sizeBytes">,
): Promise<CacheFile> {
  const path = join(directory, `${hash}-${randomBytes(6).toString("hex")}${suffix}`);
  const slotCount = slotsOf(sizeBytes);
  const name = Buffer.from(key);
  const end = Buffer.alloc(name.length + tailBytes);
  name.copy(end);
  end.writeUInt32LE(name.length, name.length);
  end.writeUInt32LE(magic, name.length + 4);
  await withFile(path, "wx", (file) => file.write(end, 0, end.length, slotCount * (slotBytes + 1)));
  return new CacheFile({ key, path, sizeBytes, slots: new SharedArrayBuffer(slotCount) });
}

/** Opens what an earlier process left of an object; undefined when it is of another size. */
export async function openCacheFile(
  path: string,
  { key, sizeBytes }: Pick<CachedObject, "key" | "sizeBytes">,
): Promise<CacheFile | undefined> {
  const slotCount = slotsOf(sizeBytes);
  const left = await readCacheFile(path);
  if (left?.flags.byteLength !== slotCount || left.key !== key) return undefined;
  const slots = new SharedArrayBuffer(slotCount);
  new Uint8Array(slots).set(left.flags.map((flag) => (flag === 1 ? 1 : 0)));
  return new CacheFile({ key, path, sizeBytes, slots });
}

/** The files of a directory, and how many bytes each has; deletes damaged ones. */
export async function findCacheFiles(
  directory: string,
): Promise<(FoundFile & { readonly heldBytes: number })[]> {
  const found: (FoundFile & { heldBytes: number })[] = [];
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    const hash = /^([0-9a-f]{32})-[0-9a-f]{12}\.slots$/.exec(name)?.[1];
    if (hash === undefined) continue;
    const left = await readCacheFile(path);
    if (left === undefined) {
      await rm(path, { force: true });
      continue;
    }
    const { mtimeMs } = await stat(path);
    const heldBytes = left.flags.reduce((sum, flag) => sum + (flag === 1 ? slotBytes : 0), 0);
    found.push({ path, key: left.key, hash, usedMs: mtimeMs, heldBytes });
  }
  return found;
}

function slotsOf(sizeBytes: number): number {
  return Math.ceil(sizeBytes / slotBytes);
}

/** The key of the object that a file is of, and which of its slots are there; undefined for a damaged file. */
function readCacheFile(
  path: string,
): Promise<{ readonly key: string; readonly flags: Uint8Array } | undefined> {
  return withFile(path, "r", async (file) => {
    const { size } = await file.stat();
    const readAt = async (from: number, length: number): Promise<Buffer | undefined> => {
      if (from < 0 || length <= 0) return undefined;
      const bytes = Buffer.alloc(length);
      const { bytesRead } = await file.read(bytes, 0, length, from);
      return bytesRead === length ? bytes : undefined;
    };
    const keyBytes = keyBytesOf(await readAt(size - tailBytes, tailBytes));
    if (keyBytes === undefined) return undefined;
    const slotCount = (size - tailBytes - keyBytes) / (slotBytes + 1);
    if (!Number.isInteger(slotCount)) return undefined;
    const key = await readAt(size - tailBytes - keyBytes, keyBytes);
    const flags = await readAt(slotCount * slotBytes, slotCount);
    return key === undefined || flags === undefined ? undefined : { key: String(key), flags };
  });
}

/** The key of the object that a file of the cache is of; undefined for a damaged file. */
export function cachedKeyOf(file: Pick<SyncRangeReader, "read" | "sizeBytes">): string | undefined {
  const { sizeBytes } = file;
  if (sizeBytes < tailBytes) return undefined;
  const keyBytes = keyBytesOf(Buffer.from(file.read(sizeBytes - tailBytes, tailBytes)));
  if (keyBytes === undefined || keyBytes > sizeBytes - tailBytes) return undefined;
  return Buffer.from(file.read(sizeBytes - tailBytes - keyBytes, keyBytes)).toString();
}

function keyBytesOf(tail: Buffer | undefined): number | undefined {
  return tail?.readUInt32LE(4) === magic ? tail.readUInt32LE(0) : undefined;
}
