import { crc32 } from "@skald/kernels";
import { errorCodeOf } from "@skald/model";
import { type CallOptions, type ObjectStore, tenantPrefix } from "@skald/storage";
import { type DeleteProgress, type DeleteRequest, noProgress } from "./delete-request.js";

/** A request and its progress as they were read. */
export interface StoredRequest {
  readonly request: DeleteRequest;
  readonly progress: DeleteProgress;
}

export interface RequestStoreOptions {
  readonly store: ObjectStore;
  /** What keys begin with. */
  readonly prefix: string;
  /** Told of a file that cannot be read: unless somebody knows its request, that is not carried out. */
  readonly onDamaged: (key: string, error: unknown) => void;
}

/** The version of the files that this code writes, and the newest that it reads. */
const version = 1;

interface Envelope {
  readonly version: number;
  /** Of the JSON text of `body`. */
  readonly crc32: number;
  readonly body: unknown;
}

/** What a listing of the store found. */
export interface LoadedRequests {
  readonly requests: readonly StoredRequest[];
  /** Keys of requests that are damaged, to be written again by whoever knows them. */
  readonly damaged: ReadonlySet<string>;
}

/** What was read of a key, to be read again when the object has changed. */
interface Read {
  readonly stamp: string;
  readonly body: unknown;
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
  #read: ReadonlyMap<string, Read> = new Map();

  constructor(options: RequestStoreOptions) {
    this.#options = options;
  }

  /** All requests of all tenants; only what changed since the last call is read. */
  async load(options: CallOptions): Promise<LoadedRequests> {
    const { store } = this.#options;
    const read = new Map<string, Read>();
    const damaged = new Set<string>();
    for await (const { key, sizeBytes, modifiedMs } of store.list(this.#folder, options)) {
      const stamp = `${sizeBytes} ${modifiedMs}`;
      const known = this.#read.get(key);
      const body = known?.stamp === stamp ? known.body : await this.#get(key, options);
      if (body === isDamaged) damaged.add(key);
      else if (body !== undefined) read.set(key, { stamp, body });
    }
    this.#read = read;
    const requests = [...read].flatMap(([key, { body }]) => {
      if (key.endsWith(progressEnd)) return [];
      const request = body as DeleteRequest;
      const progress = read.get(progressKeyOf(key))?.body as DeleteProgress | undefined;
      return [{ request, progress: progress ?? noProgress }];
    });
    return { requests, damaged };
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

  /** Where a request is. */
  keyOf({ tenant, id, createdMs }: DeleteRequest): string {
    return `${this.#folder}${tenantPrefix(tenant)}${String(createdMs).padStart(13, "0")}-${id}.json`;
  }

  async #get(key: string, options: CallOptions): Promise<unknown> {
    if (!key.endsWith(".json")) return undefined;
    let bytes: Uint8Array;
    try {
      bytes = await this.#options.store.get(key, options);
    } catch (error) {
      // Cancelled since it was listed.
      if (errorCodeOf(error) === "not_found") return undefined;
      throw error;
    }
    try {
      return decodeRequestFile(bytes);
    } catch (error) {
      this.#options.onDamaged(key, error);
      return error instanceof NewerVersion ? undefined : isDamaged;
    }
  }
}

const isDamaged = Symbol("damaged");

/** A file that a later program wrote, and that must stay as it is. */
class NewerVersion extends Error {}

const progressEnd = ".progress.json";

function progressKeyOf(key: string): string {
  return key.replace(/\.json$/, progressEnd);
}

/** The bytes of a file of requests or their progress, with a version and a checksum. */
export function encodeRequestFile(
  body: DeleteRequest | DeleteProgress | readonly StoredRequest[],
): Uint8Array {
  const checksum = checksumOf(body);
  return Buffer.from(`${JSON.stringify({ version, crc32: checksum, body } satisfies Envelope)}\n`);
}

/** What is in the bytes of such a file. Throws for one that is damaged or of a newer version. */
export function decodeRequestFile(bytes: Uint8Array): unknown {
  const envelope = JSON.parse(Buffer.from(bytes).toString()) as Envelope;
  if (typeof envelope?.version !== "number") throw new Error("it is no delete request");
  if (!(envelope.version <= version))
    throw new NewerVersion(
      `version ${envelope.version} is newer than ${version}; update the program`,
    );
  if (checksumOf(envelope.body) !== envelope.crc32) throw new Error("the checksum is wrong");
  return envelope.body;
}

function checksumOf(body: unknown): number {
  return crc32(Buffer.from(JSON.stringify(body)));
}
