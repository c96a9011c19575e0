import {
  MemoryStore,
  RedisResultStore,
  type ResultStore,
  type ResultStores,
} from "@skald/frontend";
import { type CacheKind, steadyClock } from "@skald/model";
import { type Logger, Service } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import type { Config } from "../config/root.js";

const MB = 1_000_000;
/** Memory for answers if none is configured. */
const defaultMemoryMb = 100;

type CacheSection = Config["query_range"]["results_cache"];

/** Builds the stores of cached answers; kinds without a store of their own share one. */
export function buildResultStores(
  { query_range: range }: Config,
  { log, metrics }: { readonly log: Logger; readonly metrics: Metrics },
): { readonly stores: ResultStores; readonly service: Service } {
  const redis: RedisResultStore[] = [];
  const memory: MemoryStore[] = [];
  const openMemory = (options: MemoryOptions): ResultStore => {
    const store = new MemoryStore({ ...options, clock: steadyClock });
    memory.push(store);
    return store;
  };
  const own = (place: Place): ResultStore | undefined => {
    if (place.redis.endpoints.length === 0)
      return place.isInMemory ? openMemory(place.memory) : undefined;
    const options = { ...place.redis, log: log.child({ component: "results-cache" }) };
    const store = new RedisResultStore(options);
    redis.push(store);
    return store;
  };
  const places = kindsOf(range).map(
    ([kind, isOn, section]) => [kind, isOn, placeOf(section)] as const,
  );
  const usual = placeOf(range.results_cache);
  let shared: ResultStore | undefined;
  const common = (): ResultStore => {
    const memoryOnly = { ...usual.memory, maxBytes: defaultMemoryMb * MB };
    shared ??= own(usual) ?? openMemory(memoryOnly);
    return shared;
  };
  const count = counterOf(metrics);
  const stores: Partial<Record<CacheKind, ResultStore>> = {};
  for (const [kind, isOn, place] of places) {
    if (!isOn) continue;
    stores[kind] = count(kind, kind === "result" ? common() : (own(place) ?? common()));
  }
  const sum = (pick: (store: MemoryStore) => number) => memory.reduce((n, s) => n + pick(s), 0);
  const entries = "Answers that are kept in memory.";
  metrics.gaugeOf("embeddedcache_entries", entries, () => sum((store) => store.count));
  const bytes = "Memory of the answers that are kept.";
  metrics.gaugeOf("embeddedcache_memory_bytes", bytes, () => sum((store) => store.bytes));
  const service = new Service({
    name: "query-frontend",
    start: async () => {
      for (const store of redis) store.open();
    },
    stop: async () => {
      for (const store of redis) store.close();
    },
  });
  return { stores, service };
}

function kindsOf(range: Config["query_range"]): [CacheKind, boolean, CacheSection][] {
  return [
    ["result", range.cache_results, range.results_cache],
    ["statsResult", range.cache_index_stats_results, range.index_stats_results_cache],
    ["volumeResult", range.cache_volume_results, range.volume_results_cache],
    ["seriesResult", range.cache_series_results, range.series_results_cache],
    ["labelResult", range.cache_label_results, range.label_results_cache],
    ["instantMetricResult", range.cache_instant_metric_results, range.instant_metric_results_cache],
  ];
}

type MemoryOptions = Omit<ConstructorParameters<typeof MemoryStore>[0], "clock">;
type RedisOptions = Omit<ConstructorParameters<typeof RedisResultStore>[0], "log">;

/** The place that a section configures: Redis if it names one, else memory if that is enabled. */
interface Place {
  readonly redis: RedisOptions;
  readonly isInMemory: boolean;
  readonly memory: MemoryOptions;
}

function placeOf({ cache, compression }: CacheSection): Place {
  const { redis, embedded_cache, default_validity } = cache;
  const compress = compression !== "";
  const endpoints = redis.endpoint.split(",").map((endpoint) => endpoint.trim());
  const { tls_enabled, tls_insecure_skip_verify } = redis;
  return {
    redis: {
      endpoints: endpoints.filter((endpoint) => endpoint !== ""),
      masterName: redis.master_name,
      username: redis.username,
      password: redis.password,
      database: redis.db,
      tls: tls_enabled ? { rejectUnauthorized: !tls_insecure_skip_verify } : undefined,
      timeoutMs: redis.timeout,
      ttlMs: redis.expiration || default_validity,
      compress,
      prefix: "skald-results:",
    },
    isInMemory: embedded_cache.enabled,
    memory: {
      maxBytes: embedded_cache.max_size_mb * MB,
      maxItems: embedded_cache.max_size_items,
      ttlMs: embedded_cache.ttl,
      compress,
    },
  };
}

/** Wraps stores so that they count requested and found answers. */
function counterOf(metrics: Metrics): (kind: CacheKind, store: ResultStore) => ResultStore {
  const labels = ["name"];
  const asked = metrics.counter("cache_fetched_keys", "Kept answers that were looked for.", labels);
  const found = metrics.counter("cache_hits", "Kept answers that were found.", labels);
  return (name, store) => ({
    maxValueBytes: store.maxValueBytes,
    compress: store.compress,
    put: (key, value) => store.put(key, value),
    get: async (keys, signal) => {
      const values = await store.get(keys, signal);
      asked.inc({ name }, keys.length);
      found.inc({ name }, values.filter((value) => value !== undefined).length);
      return values;
    },
  });
}
