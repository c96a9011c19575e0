import { randomBytes } from "node:crypto";
import { type SkaldError, type SteadyClock, unavailable } from "@skald/model";
import { headId, type SharedStreams, shareTexts, type Wal } from "@skald/storage";
import { Head, HeadMemory, maxHeadBlockLineBytes, PinnedFiles } from "../head/head.js";
import type { IngesterMetrics } from "../settings/metrics.js";
import type { IngesterOptions } from "../settings/options.js";
import { Tenant } from "./tenant.js";

/** Why a head was frozen, as the `reason` of the flush metrics. */
export type FlushReason = "full" | "idle" | "max_age" | "forced" | "memory" | "wal";

/** Seals frozen heads, as `Sealer` does. */
interface HeadSealer {
  readonly frozenBytes: number;
  freeze(head: Head, reason: FlushReason): Promise<void>;
  taskOf(head: Head): Promise<void> | undefined;
  onFailure(watcher: (head: Head, error: unknown) => void): () => void;
  hurry(): void;
  room(signal?: AbortSignal): Promise<void>;
}

export interface HeadsContext {
  readonly options: IngesterOptions;
  readonly clock: SteadyClock;
  /** Start of the process, ms since the epoch. */
  readonly startMs: number;
  readonly metrics: IngesterMetrics;
  readonly sealer: () => HeadSealer;
}

/** Size of the memory of sealed heads that is kept for reuse. */
const maxFreeBytes = 64 * 1024 * 1024;
/** Part of the memory for heads that is used after the largest were frozen. */
const bulkPart = 0.75;
/** A head of tiny lines is full when its memory is this many times its target of line bytes. */
const memoryPerTarget = 4;
/** Size of the heads that are written again at a time, which takes about 20 ms of the thread. */
const maxForwardsBytes = 16 * 1024 * 1024;
/** A small head is sealed when it pins this many times the allowed part of the log. */
const maxLate = 1.5;
/** A head with this many metadata names in its blocks is full, because each name costs time when its segment is opened. */
const maxNames = 32_768;

/** The tenants and their heads: creates heads, and decides when they are frozen. */
export class Heads {
  readonly memory = new HeadMemory({ maxBytes: maxFreeBytes });
  readonly #files = new PinnedFiles();
  readonly #context: HeadsContext;
  readonly #tenants = new Map<string, Tenant>();
  readonly #instance: string;
  /** Distinguishes this process from others of the instance. */
  readonly #life = randomBytes(4).toString("hex");
  readonly #sinceMs: number;
  #nextId = 0;
  #forgotten = 0;
  /** Size of heads that a replay fills and that take no pushes yet. */
  replayedBytes = 0;

  constructor(context: HeadsContext) {
    this.#context = context;
    this.#instance = context.options.instanceId.replace(/[^A-Za-z0-9.-]/g, "-").slice(0, 100);
    this.#sinceMs = context.clock.elapsedMs();
  }

  find(tenant: string): Tenant | undefined {
    return this.#tenants.get(tenant);
  }

  tenants(): Iterable<Tenant> {
    return this.#tenants.values();
  }

  tenantOf(name: string): Tenant {
    const known = this.#tenants.get(name);
    if (known !== undefined) return known;
    const tenant = new Tenant(name, {
      createHead: (owner, day) => this.create(owner, day),
      outOfOrderWindowNs: (this.#context.options.config.max_chunk_age / 2) * 1e6,
    });
    this.#tenants.set(name, tenant);
    return tenant;
  }

  /** A change token for unknown tenants: it changes when a tenant is forgotten. */
  get untouched(): string {
    return `${this.#instance}-${this.#life}.${this.#forgotten}`;
  }

  /** The time of the oldest row in heads, ns since the epoch. */
  oldestNs(): bigint | undefined {
    let oldest: bigint | undefined;
    for (const tenant of this.tenants())
      for (const head of tenant.unsealed()) {
        const { minTime } = head.bounds();
        const ns = Number.isFinite(minTime) ? head.baseNs + BigInt(minTime) : undefined;
        if (ns !== undefined && (oldest === undefined || ns < oldest)) oldest = ns;
      }
    return oldest;
  }

  /** Number of heads that are not sealed. */
  get count(): number {
    let count = 0;
    for (const tenant of this.tenants()) count += tenant.heads.size + tenant.frozen.size;
    return count;
  }

  create(tenant: Tenant, day: number, id = this.#drawId()): Head {
    this.#context.metrics.chunksCreated.inc();
    const nowMs = this.#context.clock.elapsedMs();
    const { memory } = this;
    return new Head({ id, tenant: tenant.name, day, nowMs, memory, files: this.#files });
  }

  /** Ends a head: the next rows of its day begin another one. */
  freeze(tenant: Tenant, head: Head, reason: FlushReason): Promise<void> {
    if (tenant.heads.get(head.day) === head) tenant.heads.delete(head.day);
    tenant.frozen.add(head);
    return this.#context.sealer().freeze(head, reason);
  }

  /** Removes a head. The caller adds its segment in the same turn. */
  replace(head: Head): void {
    this.#tenants.get(head.tenant)?.frozen.delete(head);
    head.release();
  }

  /** The streams of a head with their canonical texts. */
  streamsOf(head: Head): SharedStreams {
    const table = this.tenantOf(head.tenant).streams;
    const streams = Uint32Array.from(head.chains.streams());
    return { streams, texts: shareTexts(Array.from(streams, (stream) => table.text(stream))) };
  }

  /**
   * Freezes heads that are full, and the largest ones when all heads use too much memory: several at a time, so that the next
   * pushes need not do the same.
   */
  freezeFull(tenant: Tenant, grown: Iterable<Head>): void {
    const { config } = this.#context.options;
    const targetBytes = config.head_target_size;
    const memoryTarget = memoryPerTarget * Math.max(targetBytes, maxHeadBlockLineBytes);
    for (const head of grown) {
      const isFull =
        head.lineBytes >= targetBytes ||
        head.memoryBytes >= memoryTarget ||
        head.nameCount >= maxNames;
      if (isFull && tenant.heads.get(head.day) === head) void this.freeze(tenant, head, "full");
    }
    const maxBytes = config.max_head_memory;
    if (this.#growingBytes > maxBytes) {
      for (const { tenant: owner, head: large } of this.#beyond(bulkPart * maxBytes)) {
        void this.freeze(owner, large, "memory");
      }
    }
  }

  /** Freezes heads that are old or idle, while sealing keeps up. */
  freezeOld(): void {
    const { config, bounds } = this.#context.options;
    const nowMs = this.#context.clock.elapsedMs();
    for (const { tenant, head } of this.#active()) {
      if (this.#context.sealer().frozenBytes > bounds.maxFrozenBytes / 2) return;
      if (nowMs - head.createdMs >= config.max_chunk_age) void this.freeze(tenant, head, "max_age");
      else if (nowMs - head.lastAppendMs >= config.chunk_idle_period)
        void this.freeze(tenant, head, "idle");
    }
  }

  /**
   * Handles heads that keep too much of the log from being cut: returns small ones, whose rows are better written again, a few
   * at a time, and freezes the others.
   */
  relieve(log: Pick<Wal, "bytesSince">): { tenant: Tenant; head: Head }[] {
    const { maxPinnedWalBytes, maxForwardBytes } = this.#context.options.bounds;
    const small: { tenant: Tenant; head: Head }[] = [];
    let forwardBytes = 0;
    for (const { tenant, head } of this.#active()) {
      const pinned = log.bytesSince(head.firstFile);
      if (pinned <= maxPinnedWalBytes || head.forwarding) continue;
      const isSmall = head.memoryBytes <= maxForwardBytes;
      const isLate = pinned > maxLate * maxPinnedWalBytes;
      if (!isSmall || isLate) void this.freeze(tenant, head, "wal");
      else if (head.pendingPushes === 0 && forwardBytes < maxForwardsBytes) {
        small.push({ tenant, head });
        forwardBytes += head.memoryBytes;
      }
    }
    return small;
  }

  /** Freezes heads with rows in a log file that may be lost. */
  freezeIn(file: number): void {
    for (const { tenant, head } of this.#active()) {
      if (head.firstFile <= file && head.lastFile >= file) void this.freeze(tenant, head, "wal");
    }
  }

  /**
   * Freezes every head with rows, of a tenant or of all; resolves when they are segments. Rejects with `unavailable` at the
   * first failure, because the retries in the background may take for ever.
   */
  async seal(tenant?: string): Promise<void> {
    const sealer = this.#context.sealer();
    const failed = new AbortController();
    let needsRoom = false;
    const unwatch = sealer.onFailure((head, error) => {
      if (tenant === undefined || head.tenant === tenant || needsRoom) {
        failed.abort(notSealed(error));
      }
    });
    sealer.hurry();
    try {
      const tasks: (Promise<void> | undefined)[] = [];
      for (const owner of [...this.#tenants.values()]) {
        if (tenant !== undefined && owner.name !== tenant) continue;
        for (const head of owner.frozen) tasks.push(sealer.taskOf(head));
        for (const head of [...owner.heads.values()]) {
          needsRoom = true;
          await sealer.room(failed.signal);
          needsRoom = false;
          const isNew = owner.heads.get(head.day) === head;
          tasks.push(isNew ? this.freeze(owner, head, "forced") : sealer.taskOf(head));
        }
      }
      await Promise.race([Promise.all(tasks), aborted(failed.signal)]);
    } finally {
      unwatch();
    }
  }

  /** The oldest log file with unsealed rows. */
  firstWalFile(): number {
    return this.#files.first;
  }

  /** Removes streams that were not pushed to for long, and tenants without streams and heads. */
  removeIdle(): void {
    const { chunk_idle_period } = this.#context.options.config;
    const { metrics } = this.#context;
    const beforeMs = this.#context.clock.elapsedMs() - chunk_idle_period;
    for (const tenant of [...this.tenants()]) {
      const heads = [...tenant.unsealed()];
      const isHeld = (stream: number) => heads.some((head) => head.chains.has(stream));
      const removed = tenant.streams.removeIdle(beforeMs, isHeld);
      if (removed > 0) {
        metrics.streamsRemoved.inc({ tenant: tenant.name }, removed);
        metrics.memoryStreams.set({ tenant: tenant.name }, tenant.streams.size);
      }
      if (tenant.streams.size > 0 || heads.length > 0) continue;
      this.#tenants.delete(tenant.name);
      this.#forgotten++;
    }
  }

  *#active(): Generator<{ tenant: Tenant; head: Head }> {
    for (const tenant of this.tenants()) {
      for (const head of [...tenant.heads.values()]) yield { tenant, head };
    }
  }

  /** Size of the heads that take pushes. */
  get #growingBytes(): number {
    return this.memory.usedBytes - this.#context.sealer().frozenBytes - this.replayedBytes;
  }

  /** The largest heads, as many as must go for the others to use at most `maxBytes`. */
  #beyond(maxBytes: number): { tenant: Tenant; head: Head }[] {
    const active = [...this.#active()].sort((a, b) => b.head.memoryBytes - a.head.memoryBytes);
    let left = this.#growingBytes;
    let count = 0;
    for (; count < active.length && left > maxBytes; count++) {
      left -= (active[count] as { head: Head }).head.memoryBytes;
    }
    return active.slice(0, count);
  }

  /** Ids have the order in which heads were created: rows of an earlier head come first among equal times. */
  #drawId(): string {
    const { clock, startMs } = this.#context;
    const createdMs = startMs + Math.floor(clock.elapsedMs() - this.#sinceMs);
    return headId(this.#instance, createdMs, this.#life, this.#nextId++);
  }
}

function notSealed(cause: unknown): SkaldError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return unavailable(`sealing fails, and is tried again; the rows stay in the log: ${why}`, {
    cause,
  });
}

/** Rejects with the reason of the signal when it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
