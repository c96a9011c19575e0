import type { PushLimits } from "../limits.js";
import { TenantState } from "./tenant-state.js";

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
