import type { Ingester, Scanner, ScanOptions } from "@skald/contracts";
import { type SegmentRef, type SteadyClock, steadyClock, type TimeRange } from "@skald/model";
import { type Logger, NewerFiles, repeat, type Sleep } from "@skald/runtime";
import { maskRows } from "@skald/scan";
import type { CallOptions, SegmentCatalog } from "@skald/storage";
import {
  type DeleteRequest,
  filtersOf,
  type KnownRequest,
  openParts,
  rangeOfParts,
} from "./delete-request.js";
import type { DeleteRequests } from "./delete-requests.js";

/** Raw bytes for each stored byte of a segment, roughly. */
const compression = 5;

interface DeletePassOptions {
  readonly deletes: DeleteRequests;
  readonly catalog: Pick<SegmentCatalog, "list">;
  readonly scanner: Scanner<SegmentRef, "matches">;
  /** Its rows are not in the store yet. */
  readonly ingester: Pick<Ingester, "select" | "run" | "release">;
  /** Whether this process handles the requests of a tenant; all tenants when absent. */
  readonly owns?: (tenant: string) => boolean;
  /**
   * Drops what this process keeps of the rows of a request beside store and ingesters. It is called once those have none, and
   * the request stays open when it fails.
   */
  readonly dropCopies?: (known: KnownRequest, options: CallOptions) => Promise<void>;
  /** How long store and ingesters must be free of rows, so that other processes drop such copies; 0 when there are none. */
  readonly settleMs?: number;
  readonly clock?: SteadyClock;
  /** Requests of one run. The next run continues behind them. */
  readonly maxRequests: number;
  readonly log: Logger;
}

/**
 * Finds out which delete requests are carried out: a part of one is done when no segment that is stored has a row of it, also
 * none that counts no more, the ingester has none, neither in heads nor behind its log, and caches and patterns have dropped
 * what they had. So it does not matter who deletes rows, what stops that, and what brings
 * rows back meanwhile. A day index that is rebuilt after damage may count any stored segment again; none of those has rows of a
 * part that is done.
 */
export class DeletePass {
  readonly #options: DeletePassOptions;
  /** The place among the due requests where the next run starts. */
  #next = 0;
  readonly #newerFiles: NewerFiles;
  /** By request: since when its parts have no row, by the steady clock; only parts that are not settled. */
  readonly #clearMs = new Map<string, ReadonlyMap<number, number>>();

  constructor(options: DeletePassOptions) {
    this.#options = options;
    this.#newerFiles = new NewerFiles(options.log);
  }

  async run(options: CallOptions): Promise<void> {
    const { deletes, dropCopies, log, owns = () => true } = this.#options;
    for (const known of this.#inTurn()) {
      const { tenant, id } = known.request;
      try {
        const parts = await this.#clearParts(known, options);
        if (parts.length > 0) await dropCopies?.(known, options);
        await deletes.note(known.request, this.#settled(known.request, parts), options);
      } catch (error) {
        options.signal.throwIfAborted();
        if (!this.#newerFiles.tell(error))
          log.warn("a delete request could not be looked after", { tenant, request: id, error });
      }
    }
    await deletes.redact(options, owns);
  }

  /** The parts, of those that have no row now, that have had none for long enough. */
  #settled({ tenant, id }: DeleteRequest, parts: readonly number[]): number[] {
    const { clock = steadyClock, settleMs = 0 } = this.#options;
    const nowMs = clock.elapsedMs();
    const key = `${tenant}/${id}`;
    const before = this.#clearMs.get(key);
    const since = new Map(parts.map((part) => [part, before?.get(part) ?? nowMs]));
    const settled = parts.filter((part) => nowMs - since.get(part)! >= settleMs);
    if (settled.length < parts.length) this.#clearMs.set(key, since);
    else this.#clearMs.delete(key);
    return settled;
  }

  /** The requests of this run. Runs take turns, because some requests stay open for hours. */
  #inTurn(): readonly KnownRequest[] {
    const { deletes, maxRequests, owns = () => true } = this.#options;
    const due = [...deletes.due()].flatMap(([tenant, known]) => (owns(tenant) ? known : []));
    const first = this.#next < due.length ? this.#next : 0;
    const chosen = [...due.slice(first), ...due.slice(0, first)].slice(0, maxRequests);
    this.#next = first + chosen.length;
    return chosen;
  }

  /** Open parts without any row left. */
  async #clearParts(known: KnownRequest, options: CallOptions): Promise<number[]> {
    const clear = new Set(openParts(known).flatMap(({ from, to }) => numbers(from, to)));
    // The ingester comes first: rows that it drops in the meantime are in the store by then.
    await this.#lookAtIngester(known, clear, options);
    if (clear.size > 0) await this.#lookAtStore(known, clear, options);
    return [...clear];
  }

  async #lookAtIngester(
    known: KnownRequest,
    clear: Set<number>,
    { signal }: CallOptions,
  ): Promise<void> {
    const { ingester } = this.#options;
    const { tenant } = known.request;
    const { matchers } = known.log;
    const request = { tenant, matchers, ...wholeRange(known), withLeaving: true };
    const { view, sources } = await ingester.select(request, { signal });
    try {
      for (const source of sources) {
        const filters = filtersOf(known, rangeOf(source));
        if (filters.length === 0) continue;
        const look = lookOptions(tenant, source.sizeBytes, signal);
        const { mask } = await ingester.run(
          "matches",
          { sources: [{ ref: source }], filters },
          look,
        );
        if (maskRows(mask) > 0) meet(known, clear, rangeOf(source));
      }
    } finally {
      if (view !== undefined) await ingester.release(view, { signal });
    }
  }

  async #lookAtStore(
    known: KnownRequest,
    clear: Set<number>,
    { signal }: CallOptions,
  ): Promise<void> {
    const { catalog, scanner } = this.#options;
    const { tenant } = known.request;
    const { matchers } = known.log;
    const range = wholeRange(known);
    const request = { tenant, matchers, ...range, maxAgeMs: 0, withUncounted: true };
    for (const source of await catalog.list(request, { signal })) {
      const filters = filtersOf(known, rangeOf(source));
      if (filters.length === 0) continue;
      const look = lookOptions(tenant, source.sizeBytes, signal);
      const { mask } = await scanner.run("matches", { sources: [{ ref: source }], filters }, look);
      if (maskRows(mask) > 0) meet(known, clear, rangeOf(source));
      if (clear.size === 0) return;
    }
  }
}

/** Options of a background scan of a source. */
export function lookOptions(tenant: string, sizeBytes: number, signal: AbortSignal): ScanOptions {
  return {
    signal,
    background: true,
    share: { tenant, actors: [], cost: sizeBytes * compression },
  };
}

/** Removes the parts that overlap a range from the clear ones. */
function meet({ request }: KnownRequest, clear: Set<number>, { fromNs, toNs }: TimeRange): void {
  for (const part of [...clear]) {
    const own = rangeOfParts(request, { from: part, to: part + 1 });
    if (own.fromNs < toNs && own.toNs > fromNs) clear.delete(part);
  }
}

function wholeRange({ request }: KnownRequest): TimeRange {
  return rangeOfParts(request, { from: 0, to: request.boundsMs.length - 1 });
}

function rangeOf({ minNs, maxNs }: { minNs: bigint; maxNs: bigint }): TimeRange {
  return { fromNs: minNs, toNs: maxNs + 1n };
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

interface DeletionLoopDeps {
  readonly deletes: DeleteRequests;
  readonly pass: DeletePass;
  /** Pause between two passes. */
  readonly intervalMs: number;
  /** Called each time that the requests were read. */
  readonly onRefreshed?: (options: CallOptions) => Promise<void>;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Requests that another compactor took are known here after this time. */
const refreshMs = 30_000;

/** Keeps the delete requests of this process up to date with the store, and checks the due ones. */
export class DeletionLoop {
  readonly #deps: DeletionLoopDeps;

  constructor(deps: DeletionLoopDeps) {
    this.#deps = deps;
  }

  /** Reads the requests. If the store does not answer, it is asked again later. */
  async start(signal: AbortSignal): Promise<void> {
    const { deletes, log } = this.#deps;
    try {
      await deletes.refresh({ signal });
    } catch (error) {
      await deletes.recall();
      const message = deletes.isKnown
        ? "the delete requests cannot be read; a copy of them is used until they can"
        : "the delete requests cannot be read, and there is no copy; queries fail until they can";
      log.error(message, { error });
    }
  }

  /** Works until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { deletes, intervalMs, log, onRefreshed, pass, sleep } = this.#deps;
    const options = { signal, ...(sleep === undefined ? {} : { sleep }) };
    await Promise.all([
      repeat(() => deletes.refresh({ signal }).then(() => onRefreshed?.({ signal })), {
        ...{ ...options, pauseMs: refreshMs },
        onError: (error) => log.warn("the delete requests cannot be read again", { error }),
      }),
      repeat(() => pass.run({ signal }), {
        ...{ ...options, pauseMs: intervalMs },
        onError: (error) => log.error("delete requests could not be looked after", { error }),
      }),
    ]);
  }
}
