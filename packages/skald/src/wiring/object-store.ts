import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SegmentLocation } from "@skald/model";
import { type Logger, Service } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { FsStore, type ObjectStore, type S3Options, S3Store, SegmentCache } from "@skald/storage";
import type { Config } from "../config/root.js";
import { s3OptionsOf, storeKind } from "../config/s3-bucket.js";
import { countedStore } from "./store-metrics.js";

/** The object store of the process. */
export interface BuiltStore {
  readonly store: ObjectStore;
  /** Where threads find the bytes of a key. */
  readonly locate: (key: string) => SegmentLocation;
  /** What was fetched of a store that is elsewhere. */
  readonly cache?: SegmentCache;
  readonly service: Service;
}

export interface StoreContext {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Told of each file of the cache that was deleted. */
  readonly onDropped: (path: string) => void;
}

/** Builds the store that the configuration names: a directory or a bucket. */
export function buildObjectStore(context: StoreContext): BuiltStore {
  const { config } = context;
  const { aws, segment_cache } = config.storage_config;
  const options = { ...s3OptionsOf(config), caFile: aws.http_config.ca_file };
  const prefix = config.common.path_prefix || ".";
  const kept = {
    directory: segment_cache.directory || join(prefix, "segment-cache"),
    maxBytes: segment_cache.max_size,
  };
  return storeKind(config) === "s3" ? buildBucket(options, kept, context) : buildDirectory(context);
}

function buildDirectory({ config, metrics }: StoreContext): BuiltStore {
  const prefix = config.common.path_prefix || ".";
  const directory = config.storage_config.filesystem.directory || join(prefix, "chunks");
  const files = new FsStore(directory, { rememberIn: join(prefix, "store.json") });
  return {
    store: countedStore(files, metrics),
    locate: (key) => ({ kind: "file", path: join(directory, key) }),
    service: new Service({
      name: "store",
      start: () => files.open(),
      stop: () => files.close(),
    }),
  };
}

function buildBucket(
  { caFile, ...options }: S3Options & { readonly caFile: string },
  kept: { readonly directory: string; readonly maxBytes: number },
  { log, metrics, onDropped }: StoreContext,
): BuiltStore {
  const objects = new S3Store(
    {
      ...options,
      ...(caFile === "" ? {} : { ca: readFileSync(caFile, "utf8") }),
      onTry: countTries(metrics),
    },
    { onFallback: (why) => log.warn("puts are not conditional in this bucket", { why }) },
  );
  const store = countedStore(objects, metrics, options.bucket);
  const cache = new SegmentCache({
    ...kept,
    store,
    storeName: `${options.endpoint ?? options.region} ${options.bucket} ${options.folder ?? ""}`,
    onDropped,
  });
  const help = "Bytes of the store's segments that are kept on the local disk.";
  metrics.gaugeOf("segment_cache_bytes", help, () => cache.bytes);
  const abort = new AbortController();
  return {
    store,
    cache,
    locate: (key) => ({ kind: "object", key }),
    service: new Service({
      name: "store",
      start: async () => {
        await cache.open();
        // A store that is down is no reason not to start: data stays on the local disk until it is back.
        void lookAt(store, log, abort.signal);
      },
      stop: async () => {
        abort.abort();
        await cache.close();
        await objects.close();
      },
    }),
  };
}

/** Says early what is wrong with a bucket: a name, a key. */
async function lookAt(store: ObjectStore, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of store.folders("", { signal })) break;
    log.info("the object store answers");
  } catch (error) {
    if (signal.aborted) return;
    log.error("the object store does not answer; data stays on the local disk until it does", {
      error,
    });
  }
}

/** Times each try: an operation of the store may take several. */
function countTries(metrics: Metrics): NonNullable<S3Options["onTry"]> {
  const requests = metrics.histogram(
    "s3_request_duration_seconds",
    "Time that requests to the bucket took.",
    ["operation", "status_code"],
  );
  const sent = metrics.counter("s3_sent_bytes_total", "Bytes put.", ["operation"]);
  const received = metrics.counter("s3_received_bytes_total", "Bytes read.", ["operation"]);
  return ({ operation, status, seconds, sentBytes, receivedBytes }) => {
    requests.observe({ operation, status_code: String(status) }, seconds);
    sent.inc({ operation }, sentBytes);
    received.inc({ operation }, receivedBytes);
  };
}
