import { readFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { type JobContext, type JobHandler, serveJobs } from "@skald/runtime";
import { type ObjectStore, S3Store, SegmentCache } from "@skald/storage";
import type { BucketPlace, StoreJob, StoreJobs, StoreReport } from "./store-job.js";

/** What the thread has: one store, and its cache. */
interface Opened {
  readonly store: S3Store;
  readonly cache: SegmentCache;
  /** Resolves when the cache knows what earlier processes left; undefined when that failed and is to be tried again. */
  ready: Promise<void> | undefined;
  readonly holds: Map<string, () => void>;
}

let opened: Opened | undefined;
let lastHold = 0;
let news: { [Key in "tries" | "dropped" | "fallbacks"]: StoreReport[Key][number][] } = noNews();

type Work<Name extends keyof StoreJobs> = (
  opened: Opened,
  asked: StoreJobs[Name],
  context: JobContext,
) => unknown;

const work: { readonly [Name in keyof StoreJobs]: Work<Name> } = {
  put: ({ store }, { key, body, ...options }, { signal }) =>
    store.put(key, body, { ...options, signal }),
  put_file: ({ store }, { key, path, ...options }, { signal }) =>
    store.putFile(key, path, { ...options, signal }),
  get: ({ store }, { key }, context) => store.get(key, context),
  stat: ({ store }, { key }, context) => store.stat(key, context),
  get_range: ({ store }, { key, range }, context) => store.getRange(key, range, context),
  list: ({ store }, { prefix, ...options }, { signal }) =>
    gathered(store.list(prefix, { ...options, signal })),
  folders: ({ store }, { prefix }, context) => gathered(store.folders(prefix, context)),
  delete: ({ store }, { key }, context) => store.delete(key, context),
  open: (store) => openCache(store),
  hold: async (store, { objects }) => {
    await openCache(store);
    const { cache, holds } = store;
    const held = await cache.hold(objects);
    // Not one of a thread that died before.
    const hold = `${threadId} ${++lastHold}`;
    holds.set(hold, held.release);
    return { hold, objects: held.objects };
  },
  release: ({ holds }, { hold }) => {
    holds.get(hold)?.();
    holds.delete(hold);
  },
  fetch: ({ cache }, { ranges }, { signal }) => cache.fetch(ranges, signal),
  drop: ({ cache }, { key }) => cache.drop(key),
  close: async ({ cache, store }) => {
    await cache.close();
    await store.close();
  },
};

// The thread of the bucket: requests, their bodies, hashes and encryption are nobody else's work.
serveJobs(
  Object.fromEntries(
    Object.entries(work).map(([name, act]) => [name, jobOf(act as Work<keyof StoreJobs>)]),
  ),
);

function jobOf(act: Work<keyof StoreJobs>): JobHandler {
  return async ({ place, asked }: StoreJob, context) => {
    opened ??= openAll(place);
    try {
      return { value: await act(opened, asked, context) };
    } finally {
      tell(opened, context);
    }
  };
}

function openAll({ bucket, caFile, cache: kept }: BucketPlace): Opened {
  const store = new S3Store(
    {
      ...bucket,
      ...(caFile === "" ? {} : { ca: readFileSync(caFile, "utf8") }),
      onTry: (report) => news.tries.push(report),
    },
    { onFallback: (why) => news.fallbacks.push(why) },
  );
  const cache = new SegmentCache({
    ...kept,
    store: store satisfies Pick<ObjectStore, "getRange">,
    onDropped: (path) => news.dropped.push(path),
  });
  return { store, cache, ready: undefined, holds: new Map() };
}

/** Once, but for a disk that did not let us. */
function openCache(store: Opened): Promise<void> {
  store.ready ??= store.cache.open().catch((error: unknown) => {
    store.ready = undefined;
    throw error;
  });
  return store.ready;
}

/** Nobody waits for it: what is not heard of is counted nowhere. */
function tell({ cache }: Opened, context: JobContext): void {
  const { tries, dropped, fallbacks } = news;
  if (tries.length + dropped.length + fallbacks.length === 0) return;
  news = noNews();
  const report: StoreReport = { tries, dropped, fallbacks, cacheBytes: cache.bytes };
  context.call("report", report).catch(() => {});
}

function noNews(): typeof news {
  return { tries: [], dropped: [], fallbacks: [] };
}

async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
