import { dirname } from "node:path";
import { crc32 } from "@skald/kernels";
import { errorCodeOf, refuseNewerVersion } from "@skald/model";
import { Semaphore } from "@skald/runtime";
import {
  type CallOptions,
  type ObjectStore,
  parseTenantPrefix,
  syncInTurn,
  tenantPrefix,
} from "@skald/storage";
import { mkdir, open, readFile, rename } from "@skald/storage/files";
import { type DeleteProgress, type DeleteRequest, noProgress } from "./delete-request.js";

/** A stored request and its progress. */
export interface StoredRequest {
  readonly request: DeleteRequest;
  readonly progress: DeleteProgress;
}

export interface RequestStoreOptions {
  readonly store: ObjectStore;
  /** Start of all keys. */
  readonly prefix: string;
  /** Called for a file that cannot be read. Its request is not carried out unless somebody knows it. */
  readonly onDamaged: (key: string, error: unknown) => void;
}

/** The version of the files that this code writes, and the newest that it reads. */
const requestVersion = 1;

interface Envelope {
  readonly version: number;
  /** Checksum of the JSON text of `body`. */
  readonly crc32: number;
  readonly body: unknown;
}

/** The requests in a listing of the store. */
export interface LoadedRequests {
  readonly requests: readonly StoredRequest[];
  /** Keys of damaged requests. A process that knows a request writes it again. */
  readonly damaged: ReadonlySet<string>;
  /** Errors by tenant for files that a later program wrote: the rows that they hide are unknown here. */
  readonly newer: ReadonlyMap<string, unknown>;
}

/** A file that was read. It is read again when the object has changed. */
interface Read {
  readonly stamp: string;
  readonly body: unknown;
  /** The error of a file without a body, because a later program wrote it. */
  readonly newer?: unknown;
}

/**
 * Keeps delete requests in the object store, each in an object of its own that is never written twice by two, and its
 * progress beside it:
 *
 *     <prefix>delete_requests/tenant=<tenant>/<created, ms>-<id>.json
 *     <prefix>delete_requests/tenant=<tenant>/<created, ms>-<id>.progress.json
 *
 * Each is JSON with a version and a checksum, replaced as a whole. Compactors that write progress at the same time lose at
 * most the news that a part is done, and do it again.
 */
export class RequestStore {
  readonly #options: RequestStoreOptions;
  #read = new Map<string, Read>();

  constructor(options: RequestStoreOptions) {
    this.#options = options;
  }

  /** Loads all requests, or those of one tenant. It reads only what changed since the last call. */
  async load(options: CallOptions, tenant?: string): Promise<LoadedRequests> {
    const { store } = this.#options;
    const folder = `${this.#folder}${tenant === undefined ? "" : tenantPrefix(tenant)}`;
    const read = new Map<string, Read>();
    const damaged = new Set<string>();
    const newer = new Map<string, unknown>();
    for await (const { key, sizeBytes, modifiedMs } of store.list(folder, options)) {
      const stamp = `${sizeBytes} ${modifiedMs}`;
      const known = this.#read.get(key);
      const found = known?.stamp === stamp ? known : await this.#get(key, stamp, options);
      if (found === isDamaged) damaged.add(key);
      else if (found !== undefined) {
        read.set(key, found);
        const owner = found.newer === undefined ? undefined : this.#tenantOf(key);
        if (owner !== undefined) newer.set(owner, found.newer);
      }
    }
    if (tenant === undefined) this.#read = read;
    else for (const [key, one] of read) this.#read.set(key, one);
    const requests = [...read].flatMap(([key, { body, newer }]) => {
      if (key.endsWith(progressEnd) || newer !== undefined) return [];
      const request = body as DeleteRequest;
      const progress = read.get(progressKeyOf(key))?.body as DeleteProgress | undefined;
      return [{ request, progress: progress ?? noProgress }];
    });
    return { requests, damaged, newer };
  }

  /** Stores a new request; false when its id is taken. */
  async add(request: DeleteRequest, { signal }: CallOptions): Promise<boolean> {
    const { store } = this.#options;
    const body = encodeRequestFile(request);
    return (await store.put(this.keyOf(request), body, { signal, ifAbsent: true })) === "stored";
  }

  /** Replaces a request. */
  async replace(request: DeleteRequest, { signal }: CallOptions): Promise<void> {
    await this.#options.store.put(this.keyOf(request), encodeRequestFile(request), { signal });
  }

  async saveProgress(
    request: DeleteRequest,
    progress: DeleteProgress,
    { signal }: CallOptions,
  ): Promise<void> {
    const key = progressKeyOf(this.keyOf(request));
    await this.#options.store.put(key, encodeRequestFile(progress), { signal });
  }

  /** Removes a request, and what is left of its progress. */
  async remove(request: DeleteRequest, options: CallOptions): Promise<void> {
    const key = this.keyOf(request);
    await this.#options.store.delete(key, options);
    await this.#options.store.delete(progressKeyOf(key), options);
  }

  get #folder(): string {
    return `${this.#options.prefix}delete_requests/`;
  }

  /** The key of a request. */
  keyOf({ tenant, id, createdMs }: DeleteRequest): string {
    return `${this.#folder}${tenantPrefix(tenant)}${String(createdMs).padStart(13, "0")}-${id}.json`;
  }

  #tenantOf(key: string): string | undefined {
    return parseTenantPrefix(key.slice(this.#folder.length, key.lastIndexOf("/") + 1));
  }

  async #get(
    key: string,
    stamp: string,
    options: CallOptions,
  ): Promise<Read | typeof isDamaged | undefined> {
    if (!key.endsWith(".json")) return undefined;
    let bytes: Uint8Array;
    try {
      bytes = await this.#options.store.get(key, options);
    } catch (error) {
      // It was cancelled after the listing.
      if (errorCodeOf(error) === "not_found") return undefined;
      throw error;
    }
    try {
      return { stamp, body: decodeRequestFile(key, bytes) };
    } catch (error) {
      if (errorCodeOf(error) === "newer_version") return { stamp, body: undefined, newer: error };
      this.#options.onDamaged(key, error);
      return isDamaged;
    }
  }
}

const isDamaged = Symbol("damaged");

const progressEnd = ".progress.json";

function progressKeyOf(key: string): string {
  return key.replace(/\.json$/, progressEnd);
}

/** The bytes of a file of requests or their progress, with a version and a checksum. */
function encodeRequestFile(
  body: DeleteRequest | DeleteProgress | StoredRequest | readonly StoredRequest[],
): Uint8Array {
  const envelope: Envelope = { version: requestVersion, crc32: checksumOf(body), body };
  return Buffer.from(`${JSON.stringify(envelope)}\n`);
}

/** Decodes such a file. Throws for a damaged file, and `newer_version` for a file of a later program. */
export function decodeRequestFile(name: string, bytes: Uint8Array): unknown {
  const envelope = JSON.parse(Buffer.from(bytes).toString()) as Envelope;
  if (typeof envelope?.version !== "number") throw new Error("it is no delete request");
  refuseNewerVersion(name, { found: envelope.version, known: requestVersion });
  if (envelope.version !== requestVersion)
    throw new Error(`its version is ${envelope.version}, not ${requestVersion}`);
  if (checksumOf(envelope.body) !== envelope.crc32) throw new Error("the checksum is wrong");
  return envelope.body;
}

function checksumOf(body: unknown): number {
  return crc32(Buffer.from(JSON.stringify(body)));
}

/**
 * A copy of the delete requests on this machine's disk, for a start while the store does not answer, and for requests that
 * are damaged there. Its first line has all requests; each line after it has one that is new or has changed.
 */
export class LocalCopy {
  readonly #path: string;
  readonly #turn = new Semaphore(1);

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * What was written last; undefined when there is nothing that can be read. What a later program wrote is no loss: the store
   * has all of it.
   */
  async read(): Promise<readonly StoredRequest[] | undefined> {
    try {
      const [first = "", ...changes] = (await readFile(this.#path, "utf8")).split("\n");
      const requests = decodeRequestFile(this.#path, Buffer.from(first)) as StoredRequest[];
      const keyOf = ({ request }: StoredRequest) => `${request.tenant}/${request.id}`;
      const found = new Map(requests.map((one) => [keyOf(one), one]));
      for (const line of changes) {
        const changed = this.#parse(line);
        // A crash may have cut the end off.
        if (changed === undefined) break;
        found.set(keyOf(changed), changed);
      }
      return [...found.values()];
    } catch {
      return undefined;
    }
  }

  /** Replaces the copy. */
  write(requests: readonly StoredRequest[]): Promise<void> {
    return this.#turn.run(async () => {
      await mkdir(dirname(this.#path), { recursive: true });
      await writeSynced(`${this.#path}.tmp`, "w", encodeRequestFile(requests));
      await rename(`${this.#path}.tmp`, this.#path);
    });
  }

  /** Adds a request, or the new state of one, to the copy. */
  append(changed: StoredRequest): Promise<void> {
    return this.#turn.run(() => writeSynced(this.#path, "a", encodeRequestFile(changed)));
  }

  #parse(line: string): StoredRequest | undefined {
    try {
      return decodeRequestFile(this.#path, Buffer.from(line)) as StoredRequest;
    } catch {
      return undefined;
    }
  }
}

async function writeSynced(path: string, flags: "w" | "a", bytes: Uint8Array): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.writeFile(bytes);
    await syncInTurn(() => file.sync());
  } finally {
    await file.close();
  }
}
