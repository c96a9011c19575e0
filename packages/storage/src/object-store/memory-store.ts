import { readFile } from "node:fs/promises";
import { type Clock, notFound, paddingBytes, systemClock } from "@skald/model";
import {
  type CallOptions,
  checkKey,
  type ListOptions,
  type ObjectInfo,
  type ObjectRange,
  type ObjectStore,
  type PutOptions,
  type PutOutcome,
  rangeError,
} from "./object-store.js";

/** An object store in memory, for tests and for a process that keeps nothing. */
export class MemoryStore implements ObjectStore {
  readonly #clock: Clock;
  readonly #objects = new Map<string, StoredObject>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<PutOutcome> {
    options.signal.throwIfAborted();
    checkKey(key);
    if (options.ifAbsent && this.#objects.has(key)) return "exists";
    this.#objects.set(key, { bytes: new Uint8Array(body), modifiedMs: this.#clock.nowMs() });
    return "stored";
  }

  async putFile(key: string, path: string, options: PutOptions): Promise<PutOutcome> {
    return this.put(key, await readFile(path, options), options);
  }

  async get(key: string, options: CallOptions): Promise<Uint8Array> {
    options.signal.throwIfAborted();
    return new Uint8Array(this.#find(key).bytes);
  }

  async stat(key: string, options: CallOptions): Promise<ObjectInfo> {
    options.signal.throwIfAborted();
    const { bytes, modifiedMs } = this.#find(key);
    return { key, sizeBytes: bytes.byteLength, modifiedMs };
  }

  async getRange(
    key: string,
    { offset, length }: ObjectRange,
    options: CallOptions,
  ): Promise<Uint8Array> {
    options.signal.throwIfAborted();
    const { bytes } = this.#find(key);
    if (offset + length > bytes.byteLength) {
      throw rangeError(key, offset, length, bytes.byteLength);
    }
    const out = new Uint8Array(length + paddingBytes).subarray(0, length);
    out.set(bytes.subarray(offset, offset + length));
    return out;
  }

  async *list(prefix: string, options: ListOptions): AsyncIterable<ObjectInfo> {
    const keys = [...this.#objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    for (const key of keys) {
      options.signal.throwIfAborted();
      const object = this.#objects.get(key);
      if (object === undefined || key <= (options.after ?? "")) continue;
      yield { key, sizeBytes: object.bytes.byteLength, modifiedMs: object.modifiedMs };
    }
  }

  async *folders(prefix: string, options: CallOptions): AsyncIterable<string> {
    const found = new Set<string>();
    for await (const { key } of this.list(prefix, options)) {
      const end = key.indexOf("/", prefix.length);
      if (end >= 0) found.add(key.slice(0, end + 1));
    }
    yield* found;
  }

  async delete(key: string, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    checkKey(key);
    this.#objects.delete(key);
  }

  #find(key: string): StoredObject {
    checkKey(key);
    const object = this.#objects.get(key);
    if (object === undefined) throw notFound(`object ${key} does not exist`);
    return object;
  }
}

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}
