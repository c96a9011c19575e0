import type { ListObjectsV2CommandInput, ListObjectsV2CommandOutput } from "@aws-sdk/client-s3";
import { notFound, SkaldError } from "@skald/model";
import type { Sleep } from "@skald/runtime";
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
} from "../object-store.js";
import {
  readBody,
  S3Calls,
  S3Failure,
  type S3Operation,
  type S3Options,
  type S3Session,
  storeError,
} from "./calls.js";
import { ConditionalPut, probePrefix } from "./conditional-put.js";
import { type Upload, Uploads } from "./upload.js";

export interface S3StoreDeps {
  /** Called once when the bucket has no conditional put. */
  readonly onFallback?: (why: string) => void;
  readonly sleep?: Sleep;
}

/** Names of one listing; S3 gives no more. */
const pageSize = 1000;

/**
 * An object store in a bucket of any server that speaks S3. Loads the library at the first call. Calls that fail in passing
 * are tried again; when they go on failing, the error is `unavailable` and says after how long to ask again.
 */
export class S3Store implements ObjectStore {
  readonly #bucket: string;
  readonly #folder: string;
  readonly #calls: S3Calls;
  readonly #uploads: Uploads;
  readonly #conditional: ConditionalPut;

  constructor(options: S3Options, { onFallback, sleep }: S3StoreDeps = {}) {
    this.#bucket = options.bucket;
    this.#folder = options.folder ?? "";
    this.#calls = new S3Calls(options, sleep);
    this.#uploads = new Uploads(this.#calls, options);
    this.#conditional = new ConditionalPut(
      {
        put: (key, body, ifAbsent, signal) =>
          this.#uploads.put(this.#upload(key, signal, ifAbsent), body),
        exists: (key, signal) => this.#exists(key, signal),
        delete: (key, signal) => this.#delete(key, signal),
      },
      onFallback,
    );
  }

  /** Ends idle connections. */
  close(): Promise<void> {
    return this.#calls.close();
  }

  put(key: string, body: Uint8Array, options: PutOptions): Promise<PutOutcome> {
    return this.#put(key, options, (upload) => this.#uploads.put(upload, body));
  }

  putFile(key: string, path: string, options: PutOptions): Promise<PutOutcome> {
    return this.#put(key, options, (upload) => this.#uploads.putFile(upload, path));
  }

  async get(key: string, options: CallOptions): Promise<Uint8Array> {
    checkKey(key);
    return this.#run(key, options, "get", async (session) => {
      const { library, send } = session;
      const { Body, ContentLength } = await send(new library.GetObjectCommand(this.#place(key)));
      return readBody(Body, ContentLength ?? 0, session);
    });
  }

  async stat(key: string, options: CallOptions): Promise<ObjectInfo> {
    checkKey(key);
    return this.#run(key, options, "attributes", async ({ library, send }) => {
      const found = await send(new library.HeadObjectCommand(this.#place(key)));
      return infoOf(key, found.ContentLength, found.LastModified);
    });
  }

  async getRange(key: string, range: ObjectRange, options: CallOptions): Promise<Uint8Array> {
    checkKey(key);
    const { offset, length } = range;
    // S3 has no empty range.
    if (length === 0) {
      const { sizeBytes } = await this.stat(key, options);
      if (offset > sizeBytes) throw rangeError(key, offset, length, sizeBytes);
      return new Uint8Array(0);
    }
    const read = async (session: S3Session): Promise<Uint8Array> => {
      const { library, send } = session;
      const Range = `bytes=${offset}-${offset + length - 1}`;
      try {
        const found = await send(new library.GetObjectCommand({ ...this.#place(key), Range }));
        const size = sizeOf(found.ContentRange);
        if (found.ContentRange === undefined || size === undefined)
          throw new S3Failure({ status: 0, code: "NoRange", message: "ranges are not served" });
        if (offset + length > size) {
          (found.Body as unknown as { destroy(): void }).destroy();
          throw rangeError(key, offset, length, size);
        }
        return await readBody(found.Body, length, session);
      } catch (error) {
        if (statusOf(error) === 416) throw rangeError(key, offset, length, offset);
        throw error;
      }
    };
    return this.#run(key, options, "get_range", read, length);
  }

  async *list(prefix: string, options: ListOptions): AsyncIterable<ObjectInfo> {
    for await (const { Contents = [] } of this.#pages(prefix, options)) {
      for (const { Key = "", Size, LastModified } of Contents) {
        const key = Key.slice(this.#folder.length);
        // Consoles make empty objects for folders.
        if (key === "" || key.endsWith("/") || key.startsWith(probePrefix)) continue;
        yield infoOf(key, Size, LastModified);
      }
    }
  }

  async *folders(prefix: string, options: CallOptions): AsyncIterable<string> {
    for await (const { CommonPrefixes = [] } of this.#pages(prefix, options, "/")) {
      for (const { Prefix = "" } of CommonPrefixes) yield Prefix.slice(this.#folder.length);
    }
  }

  async delete(key: string, options: CallOptions): Promise<void> {
    checkKey(key);
    try {
      await this.#delete(key, options.signal);
    } catch (error) {
      throw this.#errorOf(error, key, options);
    }
  }

  /** The pages of a listing, up to the last one; those that are not asked for are not read. */
  async *#pages(prefix: string, options: ListOptions, delimiter?: string) {
    let after = options.after;
    let token: string | undefined;
    do {
      const input: ListObjectsV2CommandInput = {
        ...{ Bucket: this.#bucket, Prefix: this.#folder + prefix, MaxKeys: pageSize },
        ...(delimiter === undefined ? {} : { Delimiter: delimiter }),
        ...(after === undefined ? {} : { StartAfter: this.#folder + after }),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      };
      const page: ListObjectsV2CommandOutput = await this.#run(
        ...([prefix, options, "iter"] as const),
        ({ library, send }) => send(new library.ListObjectsV2Command(input)),
      );
      yield page;
      options.signal.throwIfAborted();
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
      after = undefined;
    } while (token !== undefined);
  }

  async #put(
    key: string,
    { signal, ifAbsent = false }: PutOptions,
    put: (upload: Upload) => Promise<void>,
  ): Promise<PutOutcome> {
    checkKey(key);
    const run = (condition: boolean) => put(this.#upload(key, signal, condition));
    try {
      signal.throwIfAborted();
      if (ifAbsent) return await this.#conditional.run(key, run, signal);
      await run(false);
      return "stored";
    } catch (error) {
      // A bucket that is not there is no object that is not there.
      if (error instanceof S3Failure && error.isAbsent) throw this.#unreachable(error, key);
      throw this.#errorOf(error, key, { signal });
    }
  }

  async #exists(key: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.stat(key, { signal });
      return true;
    } catch (error) {
      if (error instanceof SkaldError && error.code === "not_found") return false;
      throw error;
    }
  }

  async #delete(key: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#calls.run("delete", signal, ({ library, send }) =>
        send(new library.DeleteObjectCommand(this.#place(key))),
      );
    } catch (error) {
      if (!(error instanceof S3Failure) || !error.isAbsent) throw error;
    }
  }

  async #run<T>(
    key: string,
    options: CallOptions,
    operation: S3Operation,
    act: (session: S3Session) => Promise<T>,
    bodyBytes = 0,
  ): Promise<T> {
    try {
      return await this.#calls.run(operation, options.signal, act, bodyBytes);
    } catch (error) {
      throw this.#errorOf(error, key, options);
    }
  }

  #errorOf(error: unknown, key: string, { signal }: CallOptions): unknown {
    if (signal.aborted) return signal.reason;
    if (!(error instanceof S3Failure)) return error;
    return error.isAbsent
      ? notFound(`object ${key} does not exist`)
      : this.#unreachable(error, key);
  }

  #unreachable(error: S3Failure, key: string): SkaldError {
    return storeError(error, key, `s3://${this.#bucket}/${this.#folder}`);
  }

  #upload(key: string, signal: AbortSignal, ifAbsent: boolean): Upload {
    return { key: this.#folder + key, signal, ifAbsent };
  }

  #place(key: string) {
    return { Bucket: this.#bucket, Key: this.#folder + key };
  }
}

/** In whole seconds: some answers have no more. */
function infoOf(key: string, sizeBytes = 0, modified = new Date(0)): ObjectInfo {
  return { key, sizeBytes, modifiedMs: Math.floor(modified.getTime() / 1000) * 1000 };
}

/** Of `bytes 0-5/6`. */
function sizeOf(contentRange: string | undefined): number | undefined {
  const size = /\/(\d+)$/.exec(contentRange ?? "")?.[1];
  return size === undefined ? undefined : Number(size);
}

function statusOf(error: unknown): number | undefined {
  const thrown = error as { readonly $metadata?: { readonly httpStatusCode?: number } } | undefined;
  return thrown?.$metadata?.httpStatusCode;
}
