import type { RowFilter, RowMask, Scanner } from "@skald/contracts";
import {
  type Clock,
  dayNs,
  errorCodeOf,
  nowNs,
  type SegmentLocation,
  type SegmentRef,
} from "@skald/model";
import type { Logger } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { emptyMask, maskRows, uniteMasks } from "@skald/scan";
import {
  type CallOptions,
  type DayIndex,
  type DroppedRows,
  type IndexedSegment,
  segmentKey,
} from "@skald/storage";
import type { DayRemovals, DayRules } from "./compaction/compact-day.js";
import { prefixOf, type Table } from "./compaction/day-state.js";
import { lookOptions } from "./deletion/delete-pass.js";
import { filtersOf } from "./deletion/delete-request.js";
import type { DeleteRequests } from "./deletion/delete-requests.js";
import { type RetentionLimits, RetentionRules } from "./retention-rules.js";

interface RemovalRulesOptions {
  readonly deletes: DeleteRequests;
  readonly limitsOf: (tenant: string) => RetentionLimits;
  readonly scanner: Scanner<SegmentRef, "matches">;
  /** Finds the bytes of a key. */
  readonly locate: (key: string) => SegmentLocation;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Rows that are about to leave a segment. */
interface Removal {
  readonly rows: number;
  /** The number of rows that a request names. */
  readonly asked: number;
  readonly isWhole: boolean;
}

/** Days that are remembered to have no row that is too old. */
const maxClean = 100_000;
/** Announced segments that were never done, because they are damaged or the work on their day stopped. */
const maxTold = 10_000;

/** Decides which rows of a day must go: rows that are too old, and rows of requests that nobody can cancel any more. */
export class RemovalRules implements DayRules {
  readonly #options: RemovalRulesOptions;
  readonly #count;
  readonly #rows;
  /** The index and the rules of each day, by prefix, when no row was too old. */
  readonly #clean = new Map<string, string>();
  /** The last announced removal of each segment, by id. */
  readonly #told = new Map<string, Removal>();

  constructor(options: RemovalRulesOptions) {
    this.#options = options;
    const { metrics } = options;
    this.#count = metrics.counter(
      "compactor_removals_total",
      "Segments that were dropped, or written again without some rows.",
      ["outcome"],
    );
    this.#rows = metrics.counter(
      "compactor_removed_rows_total",
      "Rows that left the store for their age or by request.",
      ["reason"],
    );
  }

  /** A day is due at once while requests that can be carried out touch it. */
  isDue({ tenant, baseNs }: Table): boolean {
    return this.#deletesIn(tenant, { fromNs: baseNs, toNs: baseNs + dayNs }).length > 0;
  }

  refuseNewer({ tenant }: Table): void {
    this.#options.deletes.refuseNewer(tenant);
  }

  async changesOf(day: DayIndex, options: CallOptions): Promise<DayRemovals> {
    const { tenant, baseNs, generation } = day;
    const drop: string[] = [];
    const rewrite = new Map<string, DroppedRows>();
    if (this.#told.size >= maxTold) this.#told.clear();
    const now = nowNs(this.#options.clock);
    const rules = this.#rulesOf(tenant, baseNs, now);
    const state = rules?.stateOf(baseNs, now);
    const stamp = `${generation} ${state}`;
    const prefix = prefixOf(day);
    const isClean = state !== undefined && this.#clean.get(prefix) === stamp;
    let isDirty = false;
    for (const segment of day.segments) {
      const expired = isClean ? [] : (rules?.expired(segment.maxNs, now) ?? []);
      if (expired === "all") {
        drop.push(segment.id);
        this.#told.set(segment.id, { rows: segment.rows, asked: 0, isWhole: true });
        continue;
      }
      const found = await this.#rowsOf(tenant, segment, expired, options);
      isDirty ||= found === undefined || maskRows(found.mask) > found.asked;
      if (found === undefined || found.mask.blocks.length === 0) continue;
      const { mask, asked } = found;
      const rows = maskRows(mask);
      const isWhole = rows === segment.rows;
      if (isWhole) drop.push(segment.id);
      else rewrite.set(segment.id, mask);
      this.#told.set(segment.id, { rows, asked, isWhole });
    }
    if (state !== undefined && !isDirty && drop.length === 0) this.#noteClean(prefix, stamp);
    return { drop, rewrite };
  }

  onDone(table: Table, segments: readonly string[]): void {
    const { deletes, log } = this.#options;
    for (const id of segments) {
      const told = this.#told.get(id);
      if (told === undefined) continue;
      this.#told.delete(id);
      const { rows, asked, isWhole } = told;
      this.#count.inc({ outcome: isWhole ? "dropped" : "rewritten" });
      this.#rows.inc({ reason: "retention" }, rows - asked);
      this.#rows.inc({ reason: "request" }, asked);
      if (asked > 0) deletes.countRows(table.tenant, asked);
      log.info("rows left the store", { tenant: table.tenant, segment: id, rows, asked, isWhole });
    }
  }

  /** The rules for a day that may have rows that are too old. None apply if one cannot be read, because it might keep rows. */
  #rulesOf(tenant: string, baseNs: bigint, now: bigint): RetentionRules | undefined {
    const { limitsOf, log } = this.#options;
    try {
      const rules = new RetentionRules(limitsOf(tenant));
      const keptFromNs = rules.keptFromNs(now);
      return keptFromNs === undefined || baseNs >= keptFromNs ? undefined : rules;
    } catch (error) {
      const message = "nothing is deleted by age: a selector of retention_stream is wrong";
      log.error(message, { tenant, error });
      return undefined;
    }
  }

  #deletesIn(tenant: string, range: { readonly fromNs: bigint; readonly toNs: bigint }) {
    const due = this.#options.deletes.due().get(tenant) ?? [];
    return due.flatMap((known) => filtersOf(known, range));
  }

  /** The rows of a segment that must go, and how many of them only a request names; undefined when that cannot be found out. */
  async #rowsOf(
    tenant: string,
    { id, minNs, maxNs, sizeBytes }: IndexedSegment,
    expired: readonly RowFilter[],
    { signal }: CallOptions,
  ): Promise<{ readonly mask: RowMask; readonly asked: number } | undefined> {
    const { locate, log, scanner } = this.#options;
    const location = locate(segmentKey({ tenant, id, minNs, maxNs }));
    const source: SegmentRef = { kind: "segment", id, tenant, minNs, maxNs, sizeBytes, location };
    const deleted = this.#deletesIn(tenant, { fromNs: minNs, toNs: maxNs + 1n });
    const match = async (filters: readonly RowFilter[]) => {
      if (filters.length === 0) return emptyMask;
      const look = lookOptions(tenant, sizeBytes, signal);
      return (await scanner.run("matches", { sources: [{ ref: source }], filters }, look)).mask;
    };
    try {
      const old = await match(expired);
      const mask = uniteMasks([old, await match(deleted)]);
      return { mask, asked: maskRows(mask) - maskRows(old) };
    } catch (error) {
      signal.throwIfAborted();
      if (errorCodeOf(error) === "newer_version") throw error;
      log.warn("rows of a segment cannot be deleted", { tenant, segment: id, error });
      return undefined;
    }
  }

  #noteClean(prefix: string, stamp: string): void {
    if (this.#clean.size >= maxClean) this.#clean.clear();
    this.#clean.set(prefix, stamp);
  }
}
