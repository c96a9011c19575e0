import type { PushLimits } from "../settings/limits.js";
import { StreamRules } from "../validate/stream-rules.js";
import { TokenBucket } from "./token-bucket.js";

const bytesPerMb = 1024 * 1024;
/** Shards of backfills whose rules are kept per tenant. */
const maxBackfillShards = 64;

/** What the distributor keeps about one tenant between pushes: compiled limits and the rate bucket. */
export class TenantState {
  readonly #tenant: string;
  #limits: PushLimits;
  #rules: StreamRules;
  #backfillRules = new Map<string, StreamRules>();
  readonly #bucket: TokenBucket;
  #distributors: number;

  constructor(tenant: string, limits: PushLimits, distributors: number, nowMs: number) {
    this.#tenant = tenant;
    this.#limits = limits;
    this.#rules = new StreamRules(tenant, limits);
    this.#distributors = distributors;
    this.#bucket = new TokenBucket(
      rateOf(limits, distributors),
      limits.ingestion_burst_size_mb * bytesPerMb,
      nowMs,
    );
  }

  get limits(): PushLimits {
    return this.#limits;
  }

  get bucket(): TokenBucket {
    return this.#bucket;
  }

  /** About what it takes in memory. */
  get bytes(): number {
    const textBytes = 2 * this.#tenant.length;
    return stateBytes + textBytes + this.#backfillRules.size * backfillRulesBytes;
  }

  /** Takes over other limits, or another share of a global rate. */
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
    this.#bucket.configure(rateOf(limits, distributors), burst, nowMs);
  }

  /** The label rules, for a backfill those of its shard. */
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

/** Bytes per second that this process may take: a global rate is shared out among the distributors. */
function rateOf(limits: PushLimits, distributors: number): number {
  const rate = limits.ingestion_rate_mb * bytesPerMb;
  return limits.ingestion_rate_strategy === "global" ? rate / Math.max(1, distributors) : rate;
}

/** Memory of a tenant's state beside its name, and of the rules of one shard; both measured and rounded up. */
const stateBytes = 1024;
const backfillRulesBytes = 512;
/** Memory of all states: tens of thousands of tenants. */
const maxStatesBytes = 64 * 1024 * 1024;
/** Tenants that are looked at for one whose rate has nothing to forget. */
const maxLooks = 16;

/**
 * The tenants that push through this process. Bounded by memory: of those that pushed longest ago one goes that loses
 * nothing, because its rate limit has recovered.
 */
export class TenantStates {
  readonly #limitsOf: (tenant: string) => PushLimits;
  readonly #distributorCount: () => number;
  readonly #maxBytes: number;
  /** Those that pushed longest ago first. */
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

  /** The state of a tenant with its limits of now. */
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
