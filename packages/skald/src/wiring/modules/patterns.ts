import { join } from "node:path";
import type {
  CallOptions,
  FoundPatterns,
  PatternIngester,
  PatternsRequest,
} from "@skald/contracts";
import { unavailable } from "@skald/model";
import { LineSampler, mergePatterns, type PatternSetup, PatternThread } from "@skald/patterns";
import { type Ring, type RingInstance, ringKey } from "@skald/ring";
import { connectionOptionsOf, remotePatternIngester, servePatternIngester } from "@skald/rpc";
import { Service, WorkerPool, withDeadline } from "@skald/runtime";
import type { Limits } from "@skald/runtime/config";
import type { Config } from "../../config/root.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { threadScripts } from "../../thread-scripts.js";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../module.js";
import { buildPatternRing, patternIdOf, watchPatternRing } from "../rings.js";

/** Finds patterns in the lines that distributors send, and its place in the ring. Does nothing unless it is enabled. */
export function buildPatternIngester(parts: Parts, context: ModuleContext): BuiltModule {
  if (!context.config.pattern_ingester.enabled) return {};
  const patterns = patternThread(parts, context);
  const own = buildPatternRing(context);
  parts.ownPatterns = patterns;
  parts.ownPatternRing = own;
  if (parts.server !== undefined) servePatternIngester(parts.server, patterns);
  const service = new Service({
    name: "pattern-ingester",
    start: async (signal) => {
      patterns.start();
      await own.start();
      await own.join(signal);
    },
    stop: async () => {
      await own.leave();
      await patterns.stop();
      await own.stop();
    },
  });
  return {
    service,
    unready: () => own.ring.unready,
    routes: ringRoutes({ path: "/pattern/ring", title: "Pattern ingester ring", ring: own.ring }),
  };
}

const maxQueued = 1000;
const maxHeapMib = 512;

function patternThread(parts: Parts, { config, log, metrics }: ModuleContext): PatternThread {
  const lines = metrics.counter(
    "pattern_lines_total",
    "Lines that came in while patterns are found.",
  );
  const looked = metrics.counter(
    "pattern_looked_lines_total",
    "Lines that were looked at for that.",
  );
  return new PatternThread({
    pool: new WorkerPool({
      url: threadScripts.patterns,
      ...{ size: 1, lazy: true, maxQueued, maxHeapMib },
      onThreadLost: (error) => log.error("the thread of patterns died", { error }),
    }),
    setup: patternSetupOf(config),
    savePeriodMs: config.pattern_ingester.flush_check_period,
    fieldsOf: (tenant) => messageFieldsOf(parts.limits.of(tenant)),
    erasedOf: async (tenant) => (await parts.erasedOf?.(tenant)) ?? [],
    onLearnt: (seen, all) => {
      looked.inc(seen);
      lines.inc(all);
    },
    onError: (error) => log.error("patterns cannot be saved", { error }),
  });
}

/** JSON fields whose text is searched for patterns. */
function messageFieldsOf(limits: Limits): string[] {
  const { pattern_ingester_tokenizable_json_fields_delete: deleted } = limits;
  return [
    ...limits.pattern_ingester_tokenizable_json_fields_default,
    ...limits.pattern_ingester_tokenizable_json_fields_append,
  ].filter((name) => !deleted.includes(name));
}

const maxMinersPerTenant = 2000;
const maxTenants = 100;

function patternSetupOf({ pattern_ingester, common }: Config): PatternSetup {
  return {
    path: join(common.path_prefix, "patterns", "patterns.bin"),
    options: {
      ...{ maxMinersPerTenant, maxTenants },
      maxClusters: pattern_ingester.max_clusters,
      maxEvictionRatio: pattern_ingester.max_eviction_ratio,
      maxLineBytes: pattern_ingester.max_allowed_line_length,
      retainMs: pattern_ingester.retain_for,
      sampleMs: pattern_ingester.pattern_sample_interval,
    },
  };
}

type Call = (instance: Pick<RingInstance, "id" | "address">) => PatternIngester;

/** All pattern ingesters as one: that of this process, or those of the ring. */
export function buildPatternIngesters(parts: Parts, context: ModuleContext): BuiltModule {
  const { config } = context;
  if (!config.pattern_ingester.enabled) return {};
  const { ownPatterns } = parts;
  if (!isCluster(config) && ownPatterns !== undefined) {
    parts.patterns = ownPatterns;
    parts.sampler = samplerOf(() => ownPatterns, context);
    return {};
  }
  const watched = parts.ownPatternRing === undefined ? watchPatternRing(context) : undefined;
  const ring = (parts.ownPatternRing ?? watched)?.ring as Ring;
  const call = callsOf(parts, context);
  parts.patterns = { patterns: (request, options) => askAll(ring, call, request, options) };
  parts.sampler = samplerOf((tenant, stream) => {
    const owner = ring.view.ownerOf(ringKey(tenant, stream));
    if (owner === undefined) throw nobody();
    return call(owner);
  }, context);
  const service = new Service({
    name: "pattern-ingesters",
    start: async () => watched?.start(),
    stop: async () => watched?.stop(),
  });
  return { service };
}

/** Calls to members of the ring; the member of this process is called directly. */
function callsOf(
  { connections, ownPatterns, ownPatternRing }: Parts,
  { config }: ModuleContext,
): Call {
  const { grpc_client_config, remote_timeout } = config.pattern_ingester.client_config;
  const options = connectionOptionsOf("", grpc_client_config);
  const ownId = ownPatternRing === undefined ? undefined : patternIdOf(config);
  // An address has one object: lines for the same place travel in one call.
  const known = new Map<string, PatternIngester>();
  return ({ id, address }) => {
    if (ownPatterns !== undefined && id === ownId) return ownPatterns;
    const found = known.get(address);
    if (found !== undefined) return found;
    const remote = remotePatternIngester(connections.to(address, options));
    const message = `no answer in ${remote_timeout} ms`;
    const within = <T>({ signal }: CallOptions, call: (options: CallOptions) => Promise<T>) =>
      withDeadline({ timeoutMs: remote_timeout, message, signal }, (both) =>
        call({ signal: both }),
      );
    const called: PatternIngester = {
      learn: (lines, given) => within(given, (options) => remote.learn(lines, options)),
      patterns: (request, given) => within(given, (options) => remote.patterns(request, options)),
    };
    known.set(address, called);
    return called;
  };
}

/** Patterns are looked for in this many lines of a tenant per second, which take some 20 ms; beyond that each line stands for several. */
const maxLines = 30_000;

function samplerOf(
  learnerOf: (tenant: string, stream: string) => PatternIngester,
  { config, log, metrics }: ModuleContext,
): LineSampler {
  const lost = metrics.counter(
    "pattern_failed_batches_total",
    "Batches of lines that nobody took to find patterns in.",
  );
  return new LineSampler({
    ...{ learnerOf, maxLines },
    maxLineBytes: config.pattern_ingester.max_allowed_line_length,
    onError: (error) => {
      lost.inc();
      log.warn("patterns were not looked for in some lines", { error });
    },
  });
}

/** The patterns of all healthy members, merged. */
async function askAll(
  ring: Ring,
  call: Call,
  request: PatternsRequest,
  options: CallOptions,
): Promise<FoundPatterns> {
  const members = ring.view.instances.filter(
    ({ state, isHealthy }) => isHealthy && state === "ACTIVE",
  );
  if (members.length === 0) throw nobody();
  const found = members.map((member) => call(member).patterns(request, options));
  return mergePatterns(await Promise.all(found));
}

function nobody() {
  return unavailable("no pattern ingester is in the ring");
}
