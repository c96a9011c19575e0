import { createHash } from "node:crypto";
import { deserialize, serialize } from "node:v8";
import zlib, { constants, crc32 } from "node:zlib";
import type { CacheKind } from "@skald/model";
import type { HostFunction, JobContext } from "@skald/runtime";

/** Keeps answers of a kind under keys, and may forget any of them at any time. It never fails: what it cannot give is absent. */
export interface ResultStore {
  /** The values under the keys, in their order. */
  get(keys: readonly string[], signal: AbortSignal): Promise<readonly (Uint8Array | undefined)[]>;
  /** Keeps a value; nobody waits for it. */
  put(key: string, value: Uint8Array<ArrayBuffer>): void;
  /** Bytes of the largest value that it takes. */
  readonly maxValueBytes: number;
  /** Whether compression of values pays. */
  readonly compress: boolean;
}

/** The stores by kind of answer; answers of other kinds are not kept. */
export type ResultStores = Readonly<Partial<Record<CacheKind, ResultStore>>>;

/** Stores that return at most `maxBytes` at a time; `refuse` makes the error for more. */
export function boundedStores(
  stores: ResultStores,
  maxBytes: number,
  refuse: (bytes: number) => Error,
): ResultStores {
  const bounded: Partial<Record<CacheKind, ResultStore>> = {};
  for (const [kind, store] of Object.entries(stores)) {
    bounded[kind as CacheKind] = {
      maxValueBytes: store.maxValueBytes,
      compress: store.compress,
      put: (key, value) => store.put(key, value),
      get: async (keys, signal) => {
        const values = await store.get(keys, signal);
        const bytes = values.reduce((sum, value) => sum + (value?.byteLength ?? 0), 0);
        if (bytes > maxBytes) throw refuse(bytes);
        return values;
      },
    };
  }
  return bounded;
}

/** A short key, which is another one for each other request. */
export function resultKey(kind: CacheKind, asked: unknown): string {
  const text = JSON.stringify(asked, (_, value) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  return `${kind}:${createHash("sha256").update(text).digest("base64url")}`;
}

/** Grows when what is kept changes its form: older values count as absent then. */
const version = 2;
const headerBytes = 6;
const maxDecodedBytes = 64 * 1024 * 1024;

/**
 * Plain data as a value of a store: a version, whether it is compressed, a checksum, and the data. Undefined when it takes
 * more than the store may be given.
 */
export function wrap(
  data: unknown,
  { compress, maxBytes }: { readonly compress: boolean; readonly maxBytes: number },
): Uint8Array<ArrayBuffer> | undefined {
  const plain = serialize(data);
  if (plain.byteLength > maxDecodedBytes) return undefined;
  const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
  // Node before 22.15 has no zstd: what is kept is larger there.
  const compressed = compress ? zlib.zstdCompressSync?.(plain, level) : undefined;
  const body = compressed ?? plain;
  if (body.byteLength + headerBytes > maxBytes) return undefined;
  const value = new Uint8Array(headerBytes + body.byteLength);
  value[0] = version;
  value[1] = compressed === undefined ? 0 : 1;
  new DataView(value.buffer).setUint32(2, crc32(body));
  value.set(body, headerBytes);
  return value;
}

/** The data again; undefined when the value is of another version, or damaged. */
export function unwrap(value: Uint8Array | undefined): unknown {
  if (value === undefined || value.byteLength < headerBytes || value[0] !== version)
    return undefined;
  const body = value.subarray(headerBytes);
  const header = new DataView(value.buffer, value.byteOffset);
  if (header.getUint32(2) !== crc32(body)) return undefined;
  try {
    const options = { maxOutputLength: maxDecodedBytes };
    return deserialize(value[1] === 1 ? zlib.zstdDecompressSync(body, options) : body);
  } catch {
    return undefined;
  }
}

/** What a query thread knows of the stores of its process: plain data. */
export type KeptKinds = Readonly<
  Partial<Record<CacheKind, Pick<ResultStore, "maxValueBytes" | "compress">>>
>;

interface StoreGet {
  readonly kind: CacheKind;
  readonly keys: readonly string[];
}

interface StorePut {
  readonly kind: CacheKind;
  readonly key: string;
  readonly value: Uint8Array<ArrayBuffer>;
}

/** The kinds of answers that are kept, for query threads. */
export function kindsOf(stores: ResultStores): KeptKinds {
  const kinds: Partial<Record<CacheKind, Pick<ResultStore, "maxValueBytes" | "compress">>> = {};
  for (const [kind, { maxValueBytes, compress }] of Object.entries(stores)) {
    kinds[kind as CacheKind] = { maxValueBytes, compress };
  }
  return kinds;
}

/** The functions that jobs call for what `remoteStores` gives them. */
export function storesHost(stores: ResultStores): Record<string, HostFunction> {
  return {
    "results.get": async ({ kind, keys }: StoreGet, { signal }) => ({
      value: (await stores[kind]?.get(keys, signal)) ?? [],
    }),
    "results.put": ({ kind, key, value }: StorePut) => {
      stores[kind]?.put(key, value);
      return { value: undefined };
    },
  };
}

/** The stores of the process that runs a job. */
export function remoteStores(kinds: KeptKinds, { call }: Pick<JobContext, "call">): ResultStores {
  const stores: Partial<Record<CacheKind, ResultStore>> = {};
  for (const [name, known] of Object.entries(kinds)) {
    const kind = name as CacheKind;
    stores[kind] = {
      ...known,
      get: (keys, signal) => call("results.get", { kind, keys } satisfies StoreGet, { signal }),
      put: (key, value) => {
        const given = { kind, key, value } satisfies StorePut;
        // Nobody waits for it; it is lost when the query ends before.
        call("results.put", given, { transfer: [value.buffer] }).catch(() => undefined);
      },
    };
  }
  return stores;
}
