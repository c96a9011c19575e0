import { internal, invalidArgument, type SkaldError } from "@skald/model";

/**
 * Objects by key: a directory, memory, or a bucket. Keys are made by keys.ts alone: parts joined by slashes. An
 * object is either wholly there or not at all, and once a put resolves it lasts. Everything throws `not_found` for an
 * absent key, `unavailable` when the store does not answer as it should, `cancelled` after an abort, and
 * `invalid_argument` for what is no key.
 */
export interface ObjectStore {
  /** Stores bytes, replacing what was there, unless `ifAbsent` is given. */
  put(key: string, body: Uint8Array, options: PutOptions): Promise<PutOutcome>;
  /** The same for a file of this machine, without holding it in memory. The file must not change afterwards. */
  putFile(key: string, path: string, options: PutFileOptions): Promise<PutOutcome>;
  get(key: string, options: CallOptions): Promise<Uint8Array>;
  /** What `list` would tell of exactly this key, without a look at others. */
  stat(key: string, options: CallOptions): Promise<ObjectInfo>;
  /** Exactly these bytes; throws `internal` when the object ends before. */
  getRange(key: string, range: ObjectRange, options: CallOptions): Promise<Uint8Array>;
  /** Objects whose keys begin with the prefix, in ascending order of their keys; only those behind `after`. */
  list(prefix: string, options: ListOptions): AsyncIterable<ObjectInfo>;
  /** What the keys behind the prefix begin with, each once, up to and with the next slash, in ascending order. */
  folders(prefix: string, options: CallOptions): AsyncIterable<string>;
  /** Removes an object; one that is not there is no error. */
  delete(key: string, options: CallOptions): Promise<void>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
}

export interface PutOptions extends CallOptions {
  /** Leaves an object that is there already as it is; of several writers at once only one stores. */
  readonly ifAbsent?: boolean;
}

export interface PutFileOptions extends PutOptions {
  /** The bytes of the file were synced after they were written. */
  readonly isSynced?: boolean;
}

export type PutOutcome = "stored" | "exists";

export interface ListOptions extends CallOptions {
  readonly after?: string;
}

/** The bytes `offset .. offset + length)` of an object. */
export interface ObjectRange {
  readonly offset: number;
  readonly length: number;
}

export interface ObjectInfo {
  readonly key: string;
  readonly sizeBytes: number;
  /** When it was stored, ms since the epoch. */
  readonly modifiedMs: number;
}

/** S3's limit, in bytes of UTF-8. */
const maxKeyBytes = 1024;

/** Refuses what no store could keep: empty, too long, absolute, with `.`, `..` or empty parts, or control characters. */
export function checkKey(key: string): void {
  const parts = key.split("/");
  const good =
    key !== "" &&
    Buffer.byteLength(key) <= maxKeyBytes &&
    !parts.some((part) => part === "" || part === "." || part === "..") &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    !/[\x00-\x1f\x7f\\]/.test(key);
  if (!good) throw invalidArgument(`object key ${JSON.stringify(key)} is not valid`);
}

/** The error of a range that reaches beyond its object. */
export function rangeError(key: string, offset: number, length: number, size: number): SkaldError {
  return internal(`object ${key} has ${size} bytes, not ${length} from ${offset}`);
}
