import type { PushLimits } from "../limits.js";
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

/** Tenants that are remembered; the one that pushed longest ago goes first. */
const maxTenants = 4096;

/** The tenants that push through this process. */
export class TenantStates {
  readonly #limitsOf: (tenant: string) => PushLimits;
  readonly #distributorCount: () => number;
  readonly #states = new Map<string, TenantState>();

  constructor(limitsOf: (tenant: string) => PushLimits, distributorCount: () => number) {
    this.#limitsOf = limitsOf;
    this.#distributorCount = distributorCount;
  }

  /** The state of a tenant with its limits of now. */
  get(tenant: string, nowMs: number): TenantState {
    const limits = this.#limitsOf(tenant);
    const distributors = this.#distributorCount();
    const known = this.#states.get(tenant);
    this.#states.delete(tenant);
    const state = known ?? new TenantState(tenant, limits, distributors, nowMs);
    state.update(limits, distributors, nowMs);
    this.#states.set(tenant, state);
    if (this.#states.size > maxTenants) {
      for (const oldest of this.#states.keys()) {
        this.#states.delete(oldest);
        break;
      }
    }
    return state;
  }
}
