import type { PlacedGroup, RuleGroup } from "../rules/rule-group.js";

/** Where rules are kept. Throws `unavailable` when that does not answer as it should. */
export interface RuleStore {
  /** Groups of all tenants. */
  listAll(options: CallOptions): Promise<readonly PlacedGroup[]>;
  /** All groups of a tenant, or those of one namespace, by namespace and name. */
  list(tenant: string, options: CallOptions, namespace?: string): Promise<readonly PlacedGroup[]>;
  /** Throws not_found. */
  get(name: GroupName, options: CallOptions): Promise<RuleGroup>;
  /** Creates or replaces. */
  set(placed: PlacedGroup, options: CallOptions): Promise<void>;
  /** Of no consequence when there is no such group. */
  delete(name: GroupName, options: CallOptions): Promise<void>;
  /** Throws not_found when the namespace has no groups. */
  deleteNamespace(tenant: string, namespace: string, options: CallOptions): Promise<void>;
}

export interface GroupName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

export interface CallOptions {
  readonly signal: AbortSignal;
}

/** Texts of the answers about what is not there. */
export const noSuchGroup = "group does not exist";
export const noSuchNamespace = "group namespace does not exist";
