import type { Catalog } from "@skald/contracts";
import { errorCodeOf, errorStatus } from "@skald/model";
import type { Metrics } from "@skald/runtime";
import type { ObjectStore } from "@skald/storage";

/** Seconds; an operation on a bucket takes longer than one on a disk. */
const operationBuckets = [0.001, 0.01, 0.1, 0.3, 0.6, 1, 3, 6, 9, 20, 30, 60, 90, 120];

/**
 * The same store, with its operations counted under the names that dashboards of object stores read. A missing object and a
 * cancelled call are not failures. Segments on a local disk are read past the store.
 */
export function countedStore(
  store: ObjectStore,
  metrics: Metrics,
  operations = storeOperations(metrics, "filesystem"),
): ObjectStore {
  const { bucket } = operations;
  const run = runCounted(operations);
  const deduped = metrics.counter(
    "chunk_store_deduped_chunks_total",
    "Segments that were not stored because they were there already.",
  );
  const lastUpload = metrics.gauge(
    "objstore_bucket_last_successful_upload_time",
    "When an object was stored last, seconds since the epoch.",
    ["bucket"],
  );
  return {
    put: async (...args) => {
      const outcome = await run("upload", () => store.put(...args));
      lastUpload.set({ bucket }, Date.now() / 1000);
      return outcome;
    },
    putFile: async (...args) => {
      const outcome = await run("upload", () => store.putFile(...args));
      if (outcome === "exists") deduped.inc();
      else lastUpload.set({ bucket }, Date.now() / 1000);
      return outcome;
    },
    get: (...args) => run("get", () => store.get(...args)),
    stat: (...args) => run("attributes", () => store.stat(...args)),
    getRange: (...args) => run("get_range", () => store.getRange(...args)),
    list: (prefix, options) => countedList(run, () => store.list(prefix, options)),
    folders: (prefix, options) => countedList(run, () => store.folders(prefix, options)),
    delete: (...args) => run("delete", () => store.delete(...args)),
  };
}

/** Counts operations on one store. */
export interface Operations {
  readonly bucket: string;
  started(operation: string): void;
  succeeded(operation: string, seconds: number): void;
  failed(operation: string): void;
}

/** The counters of operations on a bucket; a directory is the bucket `filesystem`. */
export function storeOperations(metrics: Metrics, bucket: string): Operations {
  const labels = ["bucket", "operation"];
  const counter = (what: string, help: string) =>
    metrics.counter(`objstore_bucket_${what}_total`, help, labels);
  const operations = counter("operations", "Operations on the object store.");
  const failures = counter("operation_failures", "Operations on the object store that failed.");
  const duration = metrics.histogram(
    "objstore_bucket_operation_duration_seconds",
    "Time of operations on the object store that succeeded.",
    labels,
    operationBuckets,
  );
  return {
    bucket,
    started: (operation) => {
      operations.inc({ bucket, operation });
      // A rate needs the series before its first failure.
      failures.inc({ bucket, operation }, 0);
    },
    succeeded: (operation, seconds) => duration.observe({ bucket, operation }, seconds),
    failed: (operation) => failures.inc({ bucket, operation }),
  };
}

type Run = <T>(operation: string, work: () => Promise<T>) => Promise<T>;

function runCounted(operations: Operations): Run {
  return async (operation, work) => {
    const start = performance.now();
    operations.started(operation);
    try {
      const value = await work();
      operations.succeeded(operation, (performance.now() - start) / 1000);
      return value;
    } catch (error) {
      const code = errorCodeOf(error);
      if (code !== "not_found" && code !== "cancelled") operations.failed(operation);
      throw error;
    }
  };
}

/** A listing counts as one operation, however many pages it has. */
async function* countedList<T>(run: Run, list: () => AsyncIterable<T>): AsyncGenerator<T> {
  yield* await run("iter", async () => {
    const found: T[] = [];
    for await (const one of list()) found.push(one);
    return found;
  });
}

/** The same catalog, with the time to find the segments of a query measured. */
export function timedCatalog(catalog: Required<Catalog>, metrics: Metrics): Catalog {
  const seconds = metrics.histogram(
    "index_request_duration_seconds",
    "Time to find the segments of a query.",
    ["operation", "status_code"],
  );
  const timed = async <T>(find: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    const observe = (status: number): void => {
      const labels = { operation: "chunk_refs", status_code: String(status) };
      seconds.observe(labels, (performance.now() - start) / 1000);
    };
    try {
      const found = await find();
      observe(200);
      return found;
    } catch (error) {
      observe(errorStatus[errorCodeOf(error)]);
      throw error;
    }
  };
  return {
    list: (request, options) => timed(() => catalog.list(request, options)),
    count: (request, options) => timed(() => catalog.count(request, options)),
  };
}
