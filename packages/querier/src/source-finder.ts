import type { Ingester, Matcher, SourceRef } from "@skald/model";
import type { ScanPool } from "@skald/storage";
import { excludeDuplicates, orderSources, type PlannedSource } from "./sources.js";

/** Lists sealed segments of the object store; ids are those that ingesters gave them. */
export interface SegmentCatalog {
  list(request: {
    readonly tenant: string;
    readonly fromNs: bigint;
    readonly toNs: bigint;
    readonly signal: AbortSignal;
  }): Promise<readonly SourceRef[]>;
}

export interface FindRequest {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Both inclusive, ns since the epoch. */
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** Finds everything that may hold rows of a selector in a time range. */
export class SourceFinder {
  readonly #ingester: Ingester;
  readonly #catalog: SegmentCatalog;
  readonly #scans: ScanPool;

  constructor(deps: { ingester: Ingester; catalog: SegmentCatalog; scans: ScanPool }) {
    this.#ingester = deps.ingester;
    this.#catalog = deps.catalog;
    this.#scans = deps.scans;
  }

  /**
   * Asks the ingester first and the store second: a segment that the ingester dropped in between is in the store
   * already, and one that both have is used once.
   */
  async list(request: FindRequest, signal: AbortSignal): Promise<PlannedSource[]> {
    const { tenant, fromNs, toNs } = request;
    const { sources: recent } = await this.#ingester.select(request);
    const listed = await this.#catalog.list({ tenant, fromNs, toNs, signal });
    const held = new Set(recent.map((ref) => ref.id));
    return orderSources(
      recent,
      listed.filter((ref) => !held.has(ref.id)),
    );
  }

  /** The same, with the rows named that several sources have. */
  async find(request: FindRequest, signal: AbortSignal): Promise<PlannedSource[]> {
    return excludeDuplicates(await this.list(request, signal), this.#scans, signal);
  }
}
