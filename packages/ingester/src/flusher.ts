import { type SteadyClock, unavailable } from "@skald/model";
import { type Logger, type Sleep, sleep } from "@skald/runtime";
import { LocalMerger, type MergeLocal } from "./flush/local-merger.js";
import type { LocalSegment, LocalSegments } from "./flush/local-segments.js";
import { temporaryOf } from "./flush/placed-files.js";
import { type FlushReason, type Seal, Sealer } from "./flush/sealer.js";
import { type SegmentStore, Uploader } from "./flush/uploader.js";
import type { Head } from "./head/head.js";
import type { IngesterMetrics } from "./settings/metrics.js";
import type { IngesterOptions } from "./settings/options.js";
import type { Heads } from "./tenant/heads.js";

export interface FlusherContext {
  readonly options: IngesterOptions;
  readonly seal: Seal;
  readonly merge: MergeLocal;
  /** While rows of earlier processes are still in the log alone nothing is merged. */
  readonly isReplaying: () => boolean;
  readonly store: SegmentStore;
  readonly heads: Heads;
  readonly segments: LocalSegments;
  /** Told of each segment of so many bytes that has taken the place of its head. */
  readonly onSealed: (sizeBytes: number) => void;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
}

/** How long a flush gathers segments before it uploads them. */
const uploadPauseMs = 50;

/** The way of rows out of memory: heads become segments on the local disk, those go to the object store. */
export class Flusher {
  readonly sealer: Sealer;
  readonly uploader: Uploader;
  readonly #context: FlusherContext;

  constructor(context: FlusherContext) {
    this.#context = context;
    this.sealer = this.#createSealer();
    this.uploader = this.#createUploader();
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. Rejects with `unavailable`. */
  async flush(tenant?: string): Promise<void> {
    let isSealed = false;
    const sealing = this.#context.heads.seal(tenant).finally(() => {
      isSealed = true;
    });
    sealing.catch(() => undefined);
    // What is sealed is uploaded while the rest is.
    for (;;) {
      const done = new AbortController();
      const pause = (this.#context.sleep ?? sleep)(uploadPauseMs, done.signal);
      pause.catch(() => undefined);
      await Promise.race([sealing, pause]).finally(() => done.abort());
      if (isSealed) break;
      await this.uploader.flush(tenant, { early: true });
    }
    await sealing;
    await this.uploader.flush(tenant);
  }

  /** Flushes all for the last time, no longer than whoever asked for the end can be expected to wait; never rejects. */
  async flushAtEnd(): Promise<void> {
    const done = new AbortController();
    const { maxStopFlushMs } = this.#context.options.bounds;
    const late = (this.#context.sleep ?? sleep)(maxStopFlushMs, done.signal).then(() => {
      throw unavailable(`it has taken longer than ${maxStopFlushMs / 1000}s`);
    });
    const flush = this.flush();
    // Both go on behind the race, and nobody hears of them any more.
    for (const one of [flush, late]) one.catch(() => undefined);
    try {
      await Promise.race([flush, late]);
    } catch (error) {
      const text = "flushing at the end failed; the rest stays on the local disk";
      this.#context.log.error(text, { error });
    } finally {
      done.abort();
    }
  }

  /** Ends what runs; what is not sealed stays in the log, what is not uploaded on the local disk. */
  async close(): Promise<void> {
    await this.sealer.close();
    await this.uploader.close();
  }

  #createSealer(): Sealer {
    const { seal, segments, heads, metrics, clock, log, sleep } = this.#context;
    const { config, bounds } = this.#context.options;
    const { min_period, max_period } = config.flush_op_backoff;
    const digests = config.lifecycler.ring.replication_factor > 1;
    return new Sealer({
      seal: async (job) => {
        const path = temporaryOf(job.path);
        const sealed = await seal({ ...job, path, digests, sync: false });
        await segments.placed.place(job.path);
        return sealed;
      },
      concurrency: bounds.sealConcurrency,
      maxFrozenBytes: bounds.maxFrozenBytes,
      backoff: { min_period, max_period },
      pathOf: (head) => segments.pathOf(head),
      streamsOf: (head) => heads.streamsOf(head),
      onSealed: (head, sealed, path, reason) => {
        const nowMs = clock.elapsedMs();
        const measures = { reason, targetBytes: config.head_target_size, nowMs };
        observeSealed(metrics, head, sealed, measures);
        segments.add(head, sealed, path);
        heads.replace(head);
        this.#context.onSealed(sealed.sizeBytes);
      },
      onEmpty: (head) => heads.replace(head),
      onFailed: () => metrics.flushFailures.inc(),
      log,
      ...(sleep === undefined ? {} : { sleep }),
    });
  }

  #createUploader(): Uploader {
    const { options, store, segments, metrics, log, clock, merge, heads, isReplaying } =
      this.#context;
    const merger = new LocalMerger({
      segments,
      merge,
      maxInputBytes: options.bounds.maxMergeBytes,
      isSealing: (tenant) => isReplaying() || (heads.find(tenant)?.frozen.size ?? 0) > 0,
      headsOf: (tenant) =>
        [...(heads.find(tenant)?.unsealed() ?? [])].map(({ id, baseNs }) => ({
          id,
          minNs: baseNs,
        })),
      log,
    });
    return new Uploader({
      store,
      segments,
      merger,
      config: options.config,
      bounds: options.bounds,
      onStored: ({ ref }: LocalSegment) => {
        metrics.chunksStored.inc({ tenant: ref.tenant });
        metrics.storedBytes.inc({ tenant: ref.tenant }, ref.sizeBytes);
      },
      onFailed: () => metrics.flushFailures.inc(),
      log,
      clock,
    });
  }
}

/** Counts a head that became a segment. */
function observeSealed(
  metrics: IngesterMetrics,
  head: Head,
  sealed: { rows: number; bytes: number; sizeBytes: number },
  { reason, targetBytes, nowMs }: { reason: FlushReason; targetBytes: number; nowMs: number },
): void {
  const { minTime, maxTime } = head.bounds();
  metrics.chunksFlushed.inc({ reason });
  metrics.chunkSize.observe(sealed.sizeBytes);
  metrics.chunkEntries.observe(sealed.rows);
  metrics.chunkUtilization.observe(Math.min(1, sealed.bytes / targetBytes));
  metrics.chunkRatio.observe(sealed.bytes / sealed.sizeBytes);
  metrics.chunkAge.observe((nowMs - head.createdMs) / 1000);
  metrics.chunkBounds.observe((maxTime - minTime) / 3600e9);
}
