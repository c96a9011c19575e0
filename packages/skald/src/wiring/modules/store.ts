import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import type { Catalog } from "@skald/contracts";
import { type SegmentLocation, steadyClock, textForClients } from "@skald/model";
import { connectionOptionsOf, remoteCatalog, serveCatalog } from "@skald/rpc";
import { type Logger, repeat, Service } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { CountingCatalog, RemoteScanner } from "@skald/scan";
import {
  type BucketPlace,
  BucketThread,
  decodeDayIndex,
  FsStore,
  type IndexImage,
  type ObjectStore,
  type S3Options,
  type SegmentCacheCalls,
  type SegmentCacheCleaner,
  SegmentCatalog,
} from "@skald/storage";
import type { Config } from "../../config/root.js";
import { type StoreKind, s3OptionsOf, storeKind } from "../../config/s3-bucket.js";
import { threadScripts } from "../../thread-scripts.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";
import { PeerCalls } from "../peers.js";
import { countedStore, type Operations, storeOperations, timedCatalog } from "../store-metrics.js";
import { forPeer, gatewayBook, unknownPeers } from "./peers.js";

/** A smaller day index is decoded on the main thread. */
const maxDecodedHere = 64 * 1024;

/** The object store, the segments in it, and how they are scanned. */
export function buildStore(parts: Parts, context: ModuleContext): BuiltModule {
  const { metrics } = context;
  const log = context.log.child({ component: "store" });
  const { pool, scanner, threads } = parts;
  const build = builders[storeKind(context.config)];
  const { store, locate, cache, service, unready } = build(parts, { ...context, log });
  parts.store = store;
  parts.locate = locate;
  const failures = metrics.counter("store_listing_failures_total", "Listings that failed.");
  const corrupt = metrics.counter("store_corrupt_indexes_total", "Damaged day indexes.");
  const catalog = new SegmentCatalog({
    ...{ store, locate, clock: steadyClock },
    decodeIndex: async (name, bytes) =>
      bytes.byteLength <= maxDecodedHere
        ? decodeDayIndex(name, bytes)
        : pool.run<IndexImage>("open_day", { name, bytes }, { lane: "query" }),
    onCorruptIndex: (error, key) => {
      corrupt.inc();
      context.log.error("a day index is damaged; the one before it is used", { key, error });
      parts.repairDay?.(key);
    },
    onListFailure: (error, prefix) => {
      failures.inc();
      const message = "the store cannot be listed; an older listing still serves";
      context.log.warn(message, { prefix, error });
    },
  });
  parts.segments = catalog;
  const countDay: typeof threads.countDay = (task, options) => threads.countDay(task, options);
  parts.ownCatalog = timedCatalog(new CountingCatalog({ catalog, countDay }), metrics);
  parts.catalog = parts.ownCatalog;
  parts.cache = cache;
  if (cache !== undefined) parts.scanner = new RemoteScanner({ scanner, cache });
  return { service, ...(unready === undefined ? {} : { unready }) };
}

/** The object store of the process. */
interface BuiltStore {
  readonly store: ObjectStore;
  /** Where threads find the bytes of a key. */
  readonly locate: (key: string) => SegmentLocation;
  /** The local cache of a remote store. */
  readonly cache?: SegmentCacheCalls & SegmentCacheCleaner;
  readonly service: Service;
  readonly unready?: () => string | undefined;
}

/** Pause between looks for a directory that was not there at the start. */
const lookMs = 1000;

const builders: Record<StoreKind, (parts: Parts, context: ModuleContext) => BuiltStore> = {
  filesystem: buildDirectory,
  s3: buildBucket,
};

function buildDirectory(_: Parts, { config, metrics }: ModuleContext): BuiltStore {
  const prefix = config.common.path_prefix || ".";
  const directory = config.storage_config.filesystem.directory || join(prefix, "chunks");
  const files = new FsStore(directory, { rememberIn: join(prefix, "store.json") });
  // Once the store was there, pushes go on without it.
  let missing: string | undefined = "the object store was not looked at yet";
  const look = async (): Promise<void> => {
    if (missing === undefined) return;
    try {
      await files.check();
      missing = undefined;
    } catch (error) {
      missing = textForClients(error);
    }
  };
  return {
    store: countedStore(files, metrics),
    locate: (key) => ({ kind: "file", path: join(directory, key) }),
    service: new Service({
      name: "store",
      start: async () => {
        await files.open();
        await look();
      },
      run: (signal) => repeat(look, { ...{ signal, pauseMs: lookMs, onError: () => undefined } }),
      stop: () => files.close(),
    }),
    unready: () => missing,
  };
}

/** Where the bucket of a configuration and its cache are. */
export function bucketPlaceOf(config: Config): BucketPlace {
  const { aws, segment_cache } = config.storage_config;
  const bucket = s3OptionsOf(config);
  const cache = {
    directory: segment_cache.directory || join(config.common.path_prefix || ".", "segment-cache"),
    maxBytes: segment_cache.max_size,
    storeName: `${bucket.endpoint ?? bucket.region} ${bucket.bucket} ${bucket.folder ?? ""}`,
  };
  return { bucket, caFile: aws.http_config.ca_file, cache };
}

function buildBucket({ threads }: Parts, { config, log, metrics }: ModuleContext): BuiltStore {
  const place = bucketPlaceOf(config);
  const operations = storeOperations(metrics, place.bucket.bucket);
  const countTry = countTries(metrics, operations);
  let cacheBytes = 0;
  const help = "Bytes of the store's segments that are kept on the local disk.";
  metrics.gaugeOf("segment_cache_bytes", help, () => cacheBytes);
  const unconditional = metrics.gauge(
    "objstore_bucket_unconditional_puts",
    "1 when the bucket was found to have no conditional puts.",
    ["bucket"],
  );
  unconditional.set({ bucket: place.bucket.bucket }, 0);
  const thread = new BucketThread({
    ...{ url: threadScripts.bucket, place },
    onReport: (report) => {
      for (const one of report.tries) countTry(one);
      for (const path of report.dropped) threads.forget(path);
      for (const why of report.fallbacks) {
        log.warn("puts are not conditional in this bucket", { why });
        unconditional.set({ bucket: place.bucket.bucket }, 1);
      }
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
        if (place.caFile !== "") await access(place.caFile, constants.R_OK);
        // The process starts even if the store is down: data stays on the local disk until it is back.
        void tryBucket(thread, log, abort.signal);
      },
      stop: async () => {
        abort.abort();
        await thread.close();
      },
    }),
  };
}

/** Asks the bucket once, so that a wrong name or key is logged at the start. */
async function tryBucket(store: BucketThread, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await store.open();
    for await (const _ of store.folders("", { signal })) break;
    log.info("the object store answers");
  } catch (error) {
    if (signal.aborted) return;
    const message = "the object store does not answer; data stays on the local disk until it does";
    log.error(message, { error });
  }
}

/** Times each try, because an operation may take several. The cache asks for ranges past the counting store. */
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

/** Serves the catalog of the store to other processes. */
export function buildIndexGateway({ ownCatalog, server }: Parts): BuiltModule {
  if (server !== undefined) serveCatalog(server, ownCatalog);
  return {};
}

/** Pause between look-ups of the gateways' names. */
const lookupMs = 10_000;

/**
 * Asks the configured index gateways; without any this process lists the store itself. The calls of a tenant go to the same
 * gateways, which remember what they listed.
 */
export function buildCatalogClient(parts: Parts, context: ModuleContext): BuiltModule {
  const { index_gateway, storage_config } = context.config;
  const { server_address, grpc_client_config } = storage_config.tsdb_shipper.index_gateway_client;
  const { mode, ring } = index_gateway;
  const { replication_factor: copies } = ring;
  const width = mode === "ring" ? copies : 1;
  const { connections } = parts;
  const options = connectionOptionsOf("", grpc_client_config);
  const book = gatewayBook(parts, context, { text: server_address, periodMs: lookupMs });
  if (book === undefined) return {};
  const gateways = new PeerCalls<Required<Catalog>>({
    ...{ book, name: "index gateway" },
    connect: (peer) => remoteCatalog(connections.to(peer.address, forPeer(options, peer))),
  });
  parts.catalog = {
    list: (request, { signal }) => {
      const order = { tenant: request.tenant, width };
      return gateways.call((gateway) => gateway.list(request, { signal }), { signal, order });
    },
    count: (request, { signal, share }) => {
      const order = { tenant: request.tenant, width };
      const count = (gateway: Required<Catalog>) => gateway.count(request, { signal, share });
      return gateways.call(count, { signal, order });
    },
  };
  return {
    service: new Service({ name: "catalog-client", run: (signal) => book.run(signal) }),
    unready: () => unknownPeers(book, "index gateway"),
  };
}
