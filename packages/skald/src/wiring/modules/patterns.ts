import { join } from "node:path";
import { type PatternSetup, PatternThread } from "@skald/patterns";
import { Service, WorkerPool } from "@skald/runtime";
import type { TenantLimits } from "@skald/runtime/config";
import type { Config } from "../../config/root.js";
import type { BuiltModule, ModuleContext, Parts } from "./module.js";

/** Lines of a second that patterns are looked for in; of more, each stands for several. */
const maxPatternLines = 4_000;
const maxQueuedPatternJobs = 1000;
const maxPatternHeapMib = 512;
const maxMinersPerTenant = 2000;
const maxPatternTenants = 100;

/** Finds patterns in the rows of this process's ingester. */
export function buildPatterns(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  if (!config.pattern_ingester.enabled) return {};
  const lines = metrics.counter(
    "pattern_lines_total",
    "Lines that came in while patterns are found.",
  );
  const looked = metrics.counter(
    "pattern_looked_lines_total",
    "Lines that were looked at for that.",
  );
  const patterns = new PatternThread({
    pool: new WorkerPool({
      url: new URL("../../patterns-worker.js", import.meta.url),
      size: 1,
      lazy: true,
      maxQueued: maxQueuedPatternJobs,
      maxHeapMib: maxPatternHeapMib,
      onThreadLost: (error) => log.error("the thread of patterns died", { error }),
    }),
    setup: patternSetupOf(config),
    savePeriodMs: config.pattern_ingester.flush_check_period,
    onLearnt: (seen, rows) => {
      looked.inc(seen);
      lines.inc(rows);
    },
    onError: (error) => log.error("patterns cannot be saved", { error }),
  });
  parts.patterns = patterns;
  const { limits } = parts;
  parts.follow = (rows) => patterns.learn(rows, messageFieldsOf(limits.of(rows.tenant)));
  const service = new Service({
    name: "pattern-ingester",
    start: async () => patterns.start(),
    stop: () => patterns.stop(),
  });
  return { service };
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
      maxLines: maxPatternLines,
      maxMinersPerTenant,
      maxTenants: maxPatternTenants,
    },
  };
}
