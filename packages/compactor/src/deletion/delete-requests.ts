import { randomUUID } from "node:crypto";
import type { Deletes, DeletesRequest, RowFilter } from "@skald/contracts";
import {
  type Clock,
  formatGoDuration,
  invalidArgument,
  notFound,
  nsPerMs,
  unavailable,
} from "@skald/model";
import { type Logger, Semaphore } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import type { CallOptions } from "@skald/storage";
import {
  type AskedDelete,
  type DeleteProgress,
  type DeleteRequest,
  filtersOf,
  isFinished,
  type KnownRequest,
  noProgress,
  parseDeleteQuery,
  partCount,
} from "./delete-request.js";
import type { LocalCopy, RequestStore, StoredRequest } from "./request-store.js";

/** What delete requests do for a tenant. */
export type DeletionMode = "disabled" | "filter-only" | "filter-and-delete";

interface DeleteRequestsOptions {
  readonly requests: RequestStore;
  /** The requests to use while the store has not been readable since the start, or is damaged. */
  readonly copy?: LocalCopy;
  readonly modeOf: (tenant: string) => DeletionMode;
  /** A request younger than this can be cancelled, and nothing is deleted for it. */
  readonly cancelPeriodMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Ids to try until one is free. */
const maxIdTries = 10;

/**
 * The delete requests of all tenants: takes them, tells of them, and hides their rows from queries until those are stored
 * no more. The object store has them; what is in memory is as old as the last refresh at most.
 */
export class DeleteRequests implements Deletes {
  readonly #options: DeleteRequestsOptions;
  /** Changes run one after the other, so that a read never undoes a write in the meantime. */
  readonly #turn = new Semaphore(1);
  readonly #received;
  readonly #processed;
  readonly #rows;
  /** Requests by tenant, in order of creation. */
  #known: ReadonlyMap<string, readonly KnownRequest[]> = new Map();
  /** Errors by tenant, where a later program wrote a request that this one cannot read. */
  #newer: ReadonlyMap<string, unknown> = new Map();
  #isLoaded = false;

  constructor(options: DeleteRequestsOptions) {
    this.#options = options;
    const { metrics, clock } = options;
    this.#received = metrics.counter(
      "compactor_delete_requests_received_total",
      "Delete requests that were taken.",
      ["user"],
    );
    this.#processed = metrics.counter(
      "compactor_delete_requests_processed_total",
      "Delete requests whose rows are stored no more.",
      ["user"],
    );
    this.#rows = metrics.counter(
      "compactor_deleted_lines",
      "Rows that were deleted from the store by request.",
      ["user"],
    );
    const pending = () => [...this.#known.values()].flat().filter((known) => !isFinished(known));
    metrics.gaugeOf(
      "compactor_pending_delete_requests_count",
      "Delete requests that are not carried out yet.",
      () => pending().length,
    );
    metrics.gaugeOf(
      "compactor_oldest_pending_delete_request_age_seconds",
      "Age of the oldest of them; 0 when there is none.",
      () => {
        const created = pending().map(({ request }) => request.createdMs);
        return created.length === 0 ? 0 : (clock.nowMs() - Math.min(...created)) / 1000;
      },
    );
  }

  /** Reads what this or another process changed in the store since the last time. */
  refresh(options: CallOptions): Promise<void> {
    return this.#turn.run(async () => {
      const { requests, damaged, newer } = await this.#options.requests.load(options);
      this.#newer = newer;
      const rewritten = damaged.size === 0 ? [] : await this.#rewrite(damaged, options);
      this.#know([...requests, ...rewritten]);
      await this.#keepCopy();
    }, options.signal);
  }

  /** Uses this machine's copy of the requests until the store can be read. */
  recall(): Promise<void> {
    return this.#turn.run(async () => {
      const copied = this.#isLoaded ? undefined : await this.#options.copy?.read();
      if (copied !== undefined) this.#know(copied);
    });
  }

  /** Whether the requests are known, from the store or from the copy of this machine. */
  get isKnown(): boolean {
    return this.#isLoaded;
  }

  /** Whether rows of a tenant may be hidden. */
  hidesRows(tenant: string): boolean {
    if (!this.#isLoaded || this.#newer.has(tenant)) return true;
    return (this.#known.get(tenant) ?? []).some((known) => !isFinished(known));
  }

  /** Throws `newer_version` for a tenant with a request that a later program wrote, because its rows are unknown here. */
  refuseNewer(tenant: string): void {
    const error = this.#newer.get(tenant);
    if (error !== undefined) throw error;
  }

  /** A text that changes with each request that is made, cancelled or carried out, and with the mode. */
  generation(tenant: string): string {
    const known = this.#known.get(tenant);
    if (this.#newer.has(tenant)) return "newer";
    if (known === undefined) return "";
    const states = known.map(
      ({ request, progress }) =>
        `${request.id}.${progress.done.length}.${request.cancelledMs === undefined}`,
    );
    return [this.#options.modeOf(tenant), ...states].join();
  }

  /**
   * What hides rows of a tenant. Throws unavailable while nobody could read the requests since the start, and as `refuseNewer`
   * does.
   */
  async active({ tenant, ...range }: DeletesRequest): Promise<readonly RowFilter[]> {
    if (!this.#isLoaded)
      throw unavailable("the delete requests could not be read from the object store yet");
    if (this.#options.modeOf(tenant) === "disabled") return [];
    this.refuseNewer(tenant);
    const known = this.#known.get(tenant) ?? [];
    return known.flatMap((request) => filtersOf(request, range));
  }

  /** Stores a request and returns its id. From then on no query shows its rows. */
  create(tenant: string, asked: AskedDelete, options: CallOptions): Promise<string> {
    const { clock, log, requests } = this.#options;
    return this.#turn.run(async () => {
      const { query, log: rows, boundsMs } = asked;
      for (let attempt = 0; attempt < maxIdTries; attempt++) {
        const id = randomUUID().slice(0, 8);
        if (this.#find(tenant, id) !== undefined) continue;
        const createdMs = clock.nowMs();
        const request: DeleteRequest = { id, tenant, query, boundsMs, createdMs };
        if (!(await requests.add(request, options))) continue;
        this.#put({ request, progress: noProgress, log: rows });
        await this.#keepCopy();
        this.#received.inc({ user: tenant });
        const parts = partCount(request);
        log.info("took a delete request", { tenant, request: id, query, parts, ...shown(request) });
        return id;
      }
      throw unavailable("no free id for the delete request was found; try again");
    }, options.signal);
  }

  /**
   * The requests of a tenant in order of creation, those with times in a range only if one is given. Throws as `refuseNewer`
   * does.
   */
  list(tenant: string, range?: { startMs: number; endMs: number }): readonly KnownRequest[] {
    this.refuseNewer(tenant);
    const known = this.#known.get(tenant) ?? [];
    if (range === undefined) return known;
    return known.filter(({ request: { boundsMs } }) => {
      const [first, last] = [boundsMs[0]!, boundsMs.at(-1) as number];
      return first <= range.endMs && last >= range.startMs;
    });
  }

  /**
   * Cancels what is left of a request: one of which nothing was done is forgotten, another counts as carried out. Throws
   * not_found for one that is not there, invalid_argument where it cannot be cancelled any more, or not without force.
   */
  cancel(tenant: string, id: string, isForced: boolean, options: CallOptions): Promise<void> {
    const { cancelPeriodMs, clock, log, requests } = this.#options;
    return this.#turn.run(async () => {
      this.refuseNewer(tenant);
      const known = this.#find(tenant, id);
      if (known === undefined) throw notFound("could not find delete request with given id");
      const { request, progress } = known;
      const hasBegun = progress.done.length > 0;
      if (isFinished(known))
        throw invalidArgument(
          "deletion of request which is in process or already processed is not allowed",
        );
      if (hasBegun && !isForced)
        throw invalidArgument(
          "Unable to cancel partially completed delete request. To force, use the ?force query parameter",
        );
      if (clock.nowMs() - request.createdMs > cancelPeriodMs && !isForced)
        throw invalidArgument(
          `deletion of request past the deadline of ${formatGoDuration(BigInt(cancelPeriodMs) * nsPerMs)} since its creation is not allowed`,
        );
      if (hasBegun) {
        const cancelled = { ...request, cancelledMs: clock.nowMs() };
        await requests.replace(cancelled, options);
        this.#put({ ...known, request: cancelled });
      } else {
        await requests.remove(request, options);
        this.#drop(tenant, id);
      }
      await this.#keepCopy();
      log.info("cancelled a delete request", { tenant, request: id, isForced, hasBegun });
    }, options.signal);
  }

  /** Requests to carry out now: those that nobody can cancel any more, the oldest first. */
  due(): ReadonlyMap<string, readonly KnownRequest[]> {
    const { cancelPeriodMs, clock, modeOf } = this.#options;
    const latestMs = clock.nowMs() - cancelPeriodMs;
    const due = new Map<string, KnownRequest[]>();
    for (const [tenant, known] of this.#known) {
      if (modeOf(tenant) !== "filter-and-delete" || this.#newer.has(tenant)) continue;
      const ripe = known.filter((one) => !isFinished(one) && one.request.createdMs <= latestMs);
      if (ripe.length > 0) due.set(tenant, ripe);
    }
    return due;
  }

  /** Counts deleted rows. */
  countRows(tenant: string, rows: number): void {
    this.#rows.inc({ user: tenant }, rows);
  }

  /** Marks parts as done. */
  note(
    { tenant, id }: DeleteRequest,
    parts: readonly number[],
    options: CallOptions,
  ): Promise<void> {
    const { log, requests } = this.#options;
    return this.#turn.run(async () => {
      const known = this.#find(tenant, id);
      // It may have been cancelled in the meantime.
      if (known === undefined || isFinished(known) || parts.length === 0) return;
      const done = [...new Set([...known.progress.done, ...parts])].sort((a, b) => a - b);
      const progress: DeleteProgress = { done };
      await requests.saveProgress(known.request, progress, options);
      const next = { ...known, progress };
      this.#put(next);
      if (!isFinished(next)) return;
      this.#processed.inc({ user: tenant });
      log.info("carried out a delete request", { tenant, request: id });
    }, options.signal);
  }

  #know(stored: readonly StoredRequest[]): void {
    this.#known = byTenant(stored.flatMap((one) => this.#parse(one)));
    this.#isLoaded = true;
  }

  /** Writes requests that are damaged in the store again, if this process or its copy knows them, and returns them. */
  async #rewrite(damaged: ReadonlySet<string>, options: CallOptions): Promise<StoredRequest[]> {
    const { copy, log, requests } = this.#options;
    const known = this.#isLoaded ? [...this.#known.values()].flat() : ((await copy?.read()) ?? []);
    const found = known.filter(({ request }) => damaged.has(requests.keyOf(request)));
    for (const { request } of found) {
      await requests.replace(request, options);
      log.warn("wrote a damaged delete request again", {
        tenant: request.tenant,
        request: request.id,
      });
    }
    return found.map(({ request, progress }) => ({ request, progress }));
  }

  /** Updates the copy. Errors are only logged, because the store has all requests. */
  async #keepCopy(): Promise<void> {
    const { copy, log } = this.#options;
    const known = [...this.#known.values()].flat();
    try {
      await copy?.write(known.map(({ request, progress }) => ({ request, progress })));
    } catch (error) {
      log.warn("the copy of the delete requests cannot be written", { error });
    }
  }

  #find(tenant: string, id: string): KnownRequest | undefined {
    return this.#known.get(tenant)?.find(({ request }) => request.id === id);
  }

  #put(changed: KnownRequest): void {
    const { tenant, id } = changed.request;
    const others = (this.#known.get(tenant) ?? []).filter(({ request }) => request.id !== id);
    const requests = [...others, changed].sort(
      (a, b) => a.request.createdMs - b.request.createdMs || (a.request.id < b.request.id ? -1 : 1),
    );
    this.#known = new Map(this.#known).set(tenant, requests);
  }

  #drop(tenant: string, id: string): void {
    const others = (this.#known.get(tenant) ?? []).filter(({ request }) => request.id !== id);
    this.#known = new Map(this.#known).set(tenant, others);
  }

  #parse({ request, progress }: StoredRequest): KnownRequest[] {
    try {
      return [{ request, progress, log: parseDeleteQuery(request.query) }];
    } catch (error) {
      const { tenant, id, query } = request;
      const message = "a delete request cannot be read and hides nothing";
      this.#options.log.error(message, { tenant, request: id, query, error });
      return [];
    }
  }
}

/** Keys are in order of creation, and so are the requests. */
function byTenant(known: readonly KnownRequest[]): Map<string, readonly KnownRequest[]> {
  const found = new Map<string, KnownRequest[]>();
  for (const one of known) {
    const { tenant } = one.request;
    const requests = found.get(tenant);
    if (requests === undefined) found.set(tenant, [one]);
    else requests.push(one);
  }
  return found;
}

function shown({ boundsMs }: DeleteRequest) {
  const [start, end] = [boundsMs[0], boundsMs.at(-1)].map((ms) => new Date(ms as number));
  return { start: start?.toISOString(), end: end?.toISOString() };
}
