import { join } from "node:path";
import { defaultIngesterOptions, type IngesterLimits, type IngesterOptions } from "@skald/ingester";
import type { Limits } from "@skald/runtime";
import type { Config } from "../config/root.js";

/** The ingester's settings out of the configuration. */
export function ingesterOptionsOf(config: Config, instanceId: string): IngesterOptions {
  const { ingester, common } = config;
  const { wal } = ingester;
  return {
    ...defaultIngesterOptions,
    instanceId,
    dataDir: join(common.path_prefix || ".", "ingester"),
    wal: {
      ...defaultIngesterOptions.wal,
      enabled: wal.enabled,
      dir: wal.dir,
      fsync: wal.fsync,
      fsyncIntervalMs: wal.fsync_interval,
      diskFullThreshold: wal.disk_full_threshold,
      replayMemoryCeilingBytes: Math.min(
        wal.replay_memory_ceiling,
        defaultIngesterOptions.wal.replayMemoryCeilingBytes,
      ),
    },
    headTargetBytes: ingester.head_target_size,
    chunkIdlePeriodMs: ingester.chunk_idle_period,
    maxChunkAgeMs: ingester.max_chunk_age,
    outOfOrderWindowMs: ingester.max_chunk_age / 2,
    flushCheckPeriodMs: ingester.flush_check_period,
    flushOnShutdown: wal.flush_on_shutdown,
    backoff: {
      minMs: ingester.flush_op_backoff.min_period,
      maxMs: ingester.flush_op_backoff.max_period,
    },
    upload: {
      ...defaultIngesterOptions.upload,
      afterMs: ingester.chunk_idle_period,
      concurrency: ingester.concurrent_flushes,
      timeoutMs: ingester.flush_op_timeout,
    },
  };
}

/** The limits of a tenant that the ingester looks after. */
export function ingesterLimitsOf(limits: Limits): IngesterLimits {
  const counts = [limits.max_streams_per_user, limits.max_global_streams_per_user].filter(
    (count) => count > 0,
  );
  return {
    maxStreams: counts.length === 0 ? 0 : Math.min(...counts),
    streamRateBytes: limits.per_stream_rate_limit,
    streamBurstBytes: limits.per_stream_rate_limit_burst,
  };
}
