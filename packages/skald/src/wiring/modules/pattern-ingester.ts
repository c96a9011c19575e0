import { join } from "node:path";
import { type PatternSetup, PatternThread } from "@skald/patterns";
import { servePatternIngester } from "@skald/rpc";
import { Service, WorkerPool } from "@skald/runtime";
import type { TenantLimits } from "@skald/runtime/config";
import type { Config } from "../../config/root.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { threadScripts } from "../../thread-scripts.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";
import { countMembers } from "../ring-metrics.js";
import { buildPatternRing } from "../rings.js";

const maxQueuedPatternJobs = 1000;
const maxPatternHeapMib = 512;
const maxMinersPerTenant = 2000;
const maxPatternTenants = 100;

/** Finds patterns in the lines that distributors send, and its place in the ring. Does nothing unless it is enabled. */
export function buildPatternIngester(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log, metrics } = context;
  if (!config.pattern_ingester.enabled) return {};
  const patterns = threadOf(parts, context);
  const own = buildPatternRing({ config, log });
  countMembers(metrics, own.ring);
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
    routes: ringRoutes({
      paths: ["/pattern/ring"],
      title: "Pattern ingester ring",
      ring: own.ring,
    }),
  };
}

function threadOf({ limits }: Parts, { config, log, metrics }: ModuleContext): PatternThread {
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
      size: 1,
      lazy: true,
      maxQueued: maxQueuedPatternJobs,
      maxHeapMib: maxPatternHeapMib,
      onThreadLost: (error) => log.error("the thread of patterns died", { error }),
    }),
    setup: patternSetupOf(config),
    savePeriodMs: config.pattern_ingester.flush_check_period,
    fieldsOf: (tenant) => messageFieldsOf(limits.of(tenant)),
    onLearnt: (seen, all) => {
      looked.inc(seen);
      lines.inc(all);
    },
    onError: (error) => log.error("patterns cannot be saved", { error }),
  });
}

function messageFieldsOf(limits: ReturnType<TenantLimits["of"]>): string[] {
  const { pattern_ingester_tokenizable_json_fields_delete: deleted } = limits;
  return [
    ...limits.pattern_ingester_tokenizable_json_fields_default,
    ...limits.pattern_ingester_tokenizable_json_fields_append,
  ].filter((name) => !deleted.includes(name));
}

function patternSetupOf({ pattern_ingester, common }: Config): PatternSetup {
  return {
    path: join(common.path_prefix, "patterns", "patterns.bin"),
    options: {
      maxClusters: pattern_ingester.max_clusters,
      maxEvictionRatio: pattern_ingester.max_eviction_ratio,
      maxLineBytes: pattern_ingester.max_allowed_line_length,
      retainMs: pattern_ingester.retain_for,
      sampleMs: pattern_ingester.pattern_sample_interval,
      maxMinersPerTenant,
      maxTenants: maxPatternTenants,
    },
  };
}
