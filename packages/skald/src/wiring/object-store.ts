import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import type { SegmentLocation } from "@skald/model";
import { type Logger, Service } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import {
  type BucketPlace,
  BucketThread,
  FsStore,
  type ObjectStore,
  type S3Options,
  type SegmentCacheCalls,
} from "@skald/storage";
import type { Config } from "../config/root.js";
import { s3OptionsOf, storeKind } from "../config/s3-bucket.js";
import { threadScripts } from "../thread-scripts.js";
import { countedStore, type Operations, storeOperations } from "./store-metrics.js";

/** The object store of the process. */
export interface BuiltStore {
  readonly store: ObjectStore;
  /** Where threads find the bytes of a key. */
  readonly locate: (key: string) => SegmentLocation;
  /** What was fetched of a store that is elsewhere. */
  readonly cache?: SegmentCacheCalls;
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
  { caFile, ...bucket }: BucketPlace["bucket"] & Pick<BucketPlace, "caFile">,
  kept: Pick<BucketPlace["cache"], "directory" | "maxBytes">,
  { log, metrics, onDropped }: StoreContext,
): BuiltStore {
  const storeName = `${bucket.endpoint ?? bucket.region} ${bucket.bucket} ${bucket.folder ?? ""}`;
  const operations = storeOperations(metrics, bucket.bucket);
  const count = countTries(metrics, operations);
  let cacheBytes = 0;
  const help = "Bytes of the store's segments that are kept on the local disk.";
  metrics.gaugeOf("segment_cache_bytes", help, () => cacheBytes);
  const thread = new BucketThread({
    url: threadScripts.bucket,
    place: { bucket, caFile, cache: { ...kept, storeName } },
    onReport: (report) => {
      for (const one of report.tries) count(one);
      for (const path of report.dropped) onDropped(path);
      for (const why of report.fallbacks)
        log.warn("puts are not conditional in this bucket", { why });
      cacheBytes = report.cacheBytes;
    },
    onThreadLost: (error) =>
      log.error("the thread of the object store died; another takes its place", { error }),
  });
  const abort = new AbortController();
  return {
    store: countedStore(thread, metrics, operations),
    cache: thread,
    locate: (key) => ({ kind: "object", key }),
    service: new Service({
      name: "store",
      start: async () => {
        if (caFile !== "") await access(caFile, constants.R_OK);
        // A store that is down is no reason not to start: data stays on the local disk until it is back.
        void lookAt(thread, log, abort.signal);
      },
      stop: async () => {
        abort.abort();
        await thread.close();
      },
    }),
  };
}

/** Says early what is wrong with a bucket: a name, a key. */
async function lookAt(store: BucketThread, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await store.open();
    for await (const _ of store.folders("", { signal })) break;
    log.info("the object store answers");
  } catch (error) {
    if (signal.aborted) return;
    log.error("the object store does not answer; data stays on the local disk until it does", {
      error,
    });
  }
}

/** Times each try: an operation of the store may take several. Ranges are asked for by the cache alone, past the store that counts. */
function countTries(metrics: Metrics, operations: Operations): NonNullable<S3Options["onTry"]> {
  const requests = metrics.histogram(
    "s3_request_duration_seconds",
    "Time that requests to the bucket took.",
    ["operation", "status_code"],
  );
  const sent = metrics.counter("s3_sent_bytes_total", "Bytes put.", ["operation"]);
  const received = metrics.counter("s3_received_bytes_total", "Bytes read.", ["operation"]);
  return ({ operation, status, seconds, failed, sentBytes, receivedBytes }) => {
    if (operation === "get_range") {
      operations.started(operation);
      if (failed) operations.failed(operation);
      else operations.succeeded(operation, seconds);
    }
    requests.observe({ operation, status_code: String(status) }, seconds);
    sent.inc({ operation }, sentBytes);
    received.inc({ operation }, receivedBytes);
  };
}
