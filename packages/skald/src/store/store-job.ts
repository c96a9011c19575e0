import type { ObjectName, ObjectRange, S3Options, S3Try, SlotRange } from "@skald/storage";

/** Where the bucket and its cache are; goes with every job, because a thread that was replaced knows nothing. */
export interface BucketPlace {
  readonly bucket: Omit<S3Options, "ca" | "onTry">;
  /** Authorities that are trusted; those of Node when empty. */
  readonly caFile: string;
  readonly cache: {
    readonly directory: string;
    readonly storeName: string;
    readonly maxBytes: number;
  };
}

/** The jobs of the store's thread: what each is told. */
export interface StoreJobs {
  readonly put: { readonly key: string; readonly body: Uint8Array; readonly ifAbsent: boolean };
  readonly put_file: { readonly key: string; readonly path: string; readonly ifAbsent: boolean };
  readonly get: { readonly key: string };
  readonly stat: { readonly key: string };
  readonly get_range: { readonly key: string; readonly range: ObjectRange };
  readonly list: { readonly prefix: string; readonly after?: string };
  readonly folders: { readonly prefix: string };
  readonly delete: { readonly key: string };
  readonly open: Record<string, never>;
  readonly hold: { readonly objects: readonly ObjectName[] };
  readonly release: { readonly hold: string };
  readonly fetch: { readonly ranges: readonly SlotRange[] };
  readonly drop: { readonly key: string };
  readonly close: Record<string, never>;
}

export interface StoreJob<Name extends keyof StoreJobs = keyof StoreJobs> {
  readonly place: BucketPlace;
  readonly asked: StoreJobs[Name];
}

/** What happened on the thread since it last told. */
export interface StoreReport {
  readonly tries: readonly S3Try[];
  /** Files of the cache that are gone. */
  readonly dropped: readonly string[];
  /** Why puts are not conditional, when that was found out. */
  readonly fallbacks: readonly string[];
  readonly cacheBytes: number;
}
