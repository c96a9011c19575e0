import type { PushLimits } from "./config.js";
import { StreamRules } from "./stream-rules.js";

const bytesPerMb = 1024 * 1024;
/** Shards of backfills whose rules are kept per tenant. */
const maxBackfillShards = 64;

/** The state of one tenant between pushes: compiled limits and the rate bucket. */
export class TenantState {
  readonly #tenant: string;
  #limits: PushLimits;
  #rules: StreamRules;
  #backfillRules = new Map<string, StreamRules>();
  readonly bucket: TokenBucket;
  #distributors: number;

  constructor(tenant: string, limits: PushLimits, distributors: number, nowMs: number) {
    this.#tenant = tenant;
    this.#limits = limits;
    this.#rules = new StreamRules(tenant, limits);
    this.#distributors = distributors;
    this.bucket = new TokenBucket(
      rateOf(limits, distributors),
      limits.ingestion_burst_size_mb * bytesPerMb,
      nowMs,
    );
  }

  get limits(): PushLimits {
    return this.#limits;
  }

  /** Approximate size in memory. */
  get bytes(): number {
    const textBytes = 2 * this.#tenant.length;
    return stateBytes + textBytes + this.#backfillRules.size * backfillRulesBytes;
  }

  /** Applies changed limits, or another share of a global rate. */
  update(limits: PushLimits, distributors: number, nowMs: number): void {
    if (limits !== this.#limits) {
      this.#limits = limits;
      this.#rules = new StreamRules(this.#tenant, limits);
      this.#backfillRules = new Map();
    } else if (distributors === this.#distributors) {
      return;
    }
    this.#distributors = distributors;
    const burst = limits.ingestion_burst_size_mb * bytesPerMb;
    this.bucket.configure(rateOf(limits, distributors), burst, nowMs);
  }

  /** The label rules; a backfill gets those of its shard. */
  rulesFor(backfillShard: string | undefined): StreamRules {
    if (backfillShard === undefined) return this.#rules;
    const known = this.#backfillRules.get(backfillShard);
    if (known !== undefined) return known;
    if (this.#backfillRules.size === maxBackfillShards) this.#backfillRules = new Map();
    const rules = new StreamRules(this.#tenant, this.#limits, backfillShard);
    this.#backfillRules.set(backfillShard, rules);
    return rules;
  }
}

/** Bytes per second for this process: the distributors share a global rate. */
function rateOf(limits: PushLimits, distributors: number): number {
  const rate = limits.ingestion_rate_mb * bytesPerMb;
  return limits.ingestion_rate_strategy === "global" ? rate / Math.max(1, distributors) : rate;
}

/** Size of a tenant's state without its name, and of the rules of one shard; both measured and rounded up. */
const stateBytes = 1024;
const backfillRulesBytes = 512;
/** Size of all states: tens of thousands of tenants. */
const maxStatesBytes = 64 * 1024 * 1024;
/** Number of tenants that are checked for a full bucket before the oldest is dropped. */
const maxLooks = 16;

/**
 * The states of the tenants that push through this process, bounded by memory. Among those that pushed longest ago, one
 * whose bucket is full is dropped first, because it loses nothing.
 */
export class TenantStates {
  readonly #limitsOf: (tenant: string) => PushLimits;
  readonly #distributorCount: () => number;
  readonly #maxBytes: number;
  /** The tenant that pushed longest ago comes first. */
  readonly #states = new Map<string, { readonly state: TenantState; bytes: number }>();
  #bytes = 0;

  constructor(
    limitsOf: (tenant: string) => PushLimits,
    distributorCount: () => number,
    maxBytes = maxStatesBytes,
  ) {
    this.#limitsOf = limitsOf;
    this.#distributorCount = distributorCount;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#states.size;
  }

  /** The state of a tenant with its current limits. */
  get(tenant: string, nowMs: number): TenantState {
    const limits = this.#limitsOf(tenant);
    const distributors = this.#distributorCount();
    const known = this.#states.get(tenant);
    this.#states.delete(tenant);
    const state = known?.state ?? new TenantState(tenant, limits, distributors, nowMs);
    state.update(limits, distributors, nowMs);
    const { bytes } = state;
    this.#bytes += bytes - (known?.bytes ?? 0);
    while (this.#bytes > this.#maxBytes && this.#states.size > 0) this.#forgetOne(nowMs);
    this.#states.set(tenant, { state, bytes });
    return state;
  }

  #forgetOne(nowMs: number): void {
    let oldest: string | undefined;
    let looks = 0;
    for (const [tenant, { state }] of this.#states) {
      oldest ??= tenant;
      if (state.bucket.isFull(nowMs)) {
        oldest = tenant;
        break;
      }
      if (++looks === maxLooks) break;
    }
    this.#bytes -= this.#states.get(oldest ?? "")?.bytes ?? 0;
    this.#states.delete(oldest ?? "");
  }
}

/** A bucket of bytes that refills steadily; a push takes all its bytes or none. */
export class TokenBucket {
  #tokens: number;
  #updatedMs: number;
  #ratePerSecond: number;
  #burst: number;

  /** Starts full. */
  constructor(ratePerSecond: number, burst: number, nowMs: number) {
    this.#ratePerSecond = ratePerSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#updatedMs = nowMs;
  }

  get ratePerSecond(): number {
    return this.#ratePerSecond;
  }

  /** Changes the limits from now on. */
  configure(ratePerSecond: number, burst: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#ratePerSecond = ratePerSecond;
    this.#burst = burst;
    this.#tokens = Math.min(this.#tokens, burst);
  }

  /** Whether it holds the whole burst. */
  isFull(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#tokens >= this.#burst;
  }

  /** Takes `amount` if that much is left; returns whether it did. */
  take(amount: number, nowMs: number): boolean {
    this.#refill(nowMs);
    if (amount > this.#tokens) return false;
    this.#tokens -= amount;
    return true;
  }

  /** Seconds until `amount` can be taken; Infinity when it never can. */
  secondsUntil(amount: number): number {
    if (amount <= this.#tokens) return 0;
    if (amount > this.#burst || this.#ratePerSecond <= 0) return Number.POSITIVE_INFINITY;
    return (amount - this.#tokens) / this.#ratePerSecond;
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#updatedMs);
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs / 1000) * this.#ratePerSecond);
    this.#updatedMs = nowMs;
  }
}
