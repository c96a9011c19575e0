import type { Ingester, Matcher, SourceRef } from "@skald/model";
import { orderSources, type PlannedSource } from "./order-sources.js";
import type { TenantSelector } from "./tenants.js";

/** Lists sealed segments of the object store; ids are those that ingesters gave them. */
export interface SegmentCatalog {
  list(request: {
    readonly tenant: string;
    readonly fromNs: bigint;
    readonly toNs: bigint;
    readonly signal: AbortSignal;
    /** Lists anew, because a segment of the last listing was gone. */
    readonly fresh?: boolean;
  }): Promise<readonly SourceRef[]>;
}

export interface FindRequest {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Both inclusive, ns since the epoch. */
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly fresh?: boolean;
}

/** Finds everything that may hold rows of a selector in a time range. */
export class SourceFinder {
  readonly #ingester: Ingester;
  readonly #catalog: SegmentCatalog;

  constructor(deps: { ingester: Ingester; catalog: SegmentCatalog }) {
    this.#ingester = deps.ingester;
    this.#catalog = deps.catalog;
  }

  /**
   * Asks the ingester first and the store second: a segment that the ingester dropped in between is in the store
   * already, and one that both have is used once.
   */
  async list(request: FindRequest, signal: AbortSignal): Promise<PlannedSource[]> {
    const { tenant, fromNs, toNs, fresh = false } = request;
    const { sources: recent } = await this.#ingester.select(request);
    signal.throwIfAborted();
    const listed = await this.#catalog.list({ tenant, fromNs, toNs, signal, fresh });
    signal.throwIfAborted();
    const held = new Set(recent.map((ref) => ref.id));
    const stored = listed.filter((ref) => !held.has(ref.id));
    return orderSources(recent, stored);
  }

  /** The sources of several tenants, numbered through. */
  async listAll(
    selectors: readonly TenantSelector[],
    span: Pick<FindRequest, "fromNs" | "toNs" | "fresh">,
    signal: AbortSignal,
  ): Promise<PlannedSource[]> {
    const found = await Promise.all(
      selectors.map(async ({ tenant, matchers, tenantLabel }) => {
        const sources = await this.list({ tenant, matchers, ...span }, signal);
        return tenantLabel === undefined
          ? sources
          : sources.map((source) => ({ ...source, tenantLabel }));
      }),
    );
    return found.flat().map((source, sequence) => ({ ...source, sequence }));
  }
}
