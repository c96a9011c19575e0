import { randomUUID } from "node:crypto";
import type { Deletes, DeletesRequest, RowFilter } from "@skald/contracts";
import {
  type Clock,
  formatGoDuration,
  invalidArgument,
  notFound,
  nsPerMs,
  SkaldError,
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
  finishedMs,
  isFinished,
  type KnownRequest,
  noProgress,
  parseDeleteQuery,
  partCount,
  redactedQuery,
} from "./delete-request.js";
import type { LocalCopy, RequestStore, StoredRequest } from "./request-store.js";

interface ReopenedRequests {
  readonly opened: readonly DeleteRequest[];
  readonly unknown: readonly DeleteRequest[];
}

/** What delete requests do for a tenant. */
export type DeletionMode = "disabled" | "filter-only" | "filter-and-delete";

interface DeleteRequestsOptions {
  readonly requests: RequestStore;
  /** The requests to use while the store has not been readable since the start, or is damaged. */
  readonly copy?: LocalCopy;
  readonly modeOf: (tenant: string) => DeletionMode;
  /** The most requests of a tenant that may wait to be carried out; 0: no limit. */
  readonly pendingLimitOf: (tenant: string) => number;
  /** A request younger than this can be cancelled, and nothing is deleted for it. */
  readonly cancelPeriodMs: number;
  /** The text of a request that has been finished for this long is taken out. */
  readonly redactPeriodMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const recentMs = 24 * 3_600_000;
/** Ids to try until one is free. */
const maxIdTries = 10;

/**
 * The delete requests of all tenants: takes them, tells of them, and hides their rows from queries until those are stored
 * no more. The object store has them; what is in memory is as old as the last refresh at most.
 */
export class DeleteRequests implements Deletes {
  readonly #options: DeleteRequestsOptions;
  /** Reads of all requests run one after the other. */
  readonly #turn = new Semaphore(1);
  /** Changes of a tenant's requests, and reads of them alone, run one after the other. */
  readonly #tenantTurns = new Map<string, Semaphore>();
  /** Tenants whose requests changed here since the read of all requests began. */
  readonly #touched = new Set<string>();
  readonly #received;
  readonly #processed;
  readonly #rows;
  /** Requests by tenant, in order of creation. */
  readonly #known = new Map<string, readonly KnownRequest[]>();
  /** Errors by tenant, where a later program wrote a request that this one cannot read. */
  readonly #newer = new Map<string, unknown>();
  /** The states of all requests of a tenant as a text, by its list of requests. */
  readonly #states = new WeakMap<readonly KnownRequest[], string>();
  #isLoaded = false;
  /** Whether the copy lacks something that a read found. */
  #isCopyStale = true;

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

  /**
   * Reads what this or another process changed in the store since the last time. A `tenant` limits it to the requests of one
   * tenant, once those of all are known.
   */
  async refresh(options: CallOptions, tenant?: string): Promise<void> {
    if (tenant !== undefined && this.#isLoaded) {
      await this.#inTurn(tenant, () => this.#refreshTenant(tenant, options), options);
      return;
    }
    await this.#turn.run(async () => {
      this.#touched.clear();
      const loaded = await this.#options.requests.load(options);
      const lost = await this.#lostOf(loaded.damaged);
      const touched = [...this.#touched];
      const found = byTenant([...loaded.requests, ...lost]);
      for (const one of new Set([...this.#known.keys(), ...found.keys()])) {
        if (!this.#touched.has(one)) this.#know(one, found.get(one) ?? []);
      }
      for (const one of new Set([...this.#newer.keys(), ...loaded.newer.keys()]))
        this.#setNewer(one, loaded.newer.get(one));
      this.#isLoaded = true;
      // The listing may be older than what changed here in the meantime.
      for (const one of touched)
        await this.#inTurn(one, () => this.#refreshTenant(one, options), options);
      for (const one of lost)
        await this.#inTurn(one.request.tenant, () => this.#rewrite(one, options), options);
      await this.#keepCopy();
    }, options.signal);
  }

  /** Uses this machine's copy of the requests until the store can be read. */
  recall(): Promise<void> {
    return this.#turn.run(async () => {
      const copied = this.#isLoaded ? undefined : await this.#options.copy?.read();
      if (copied === undefined) return;
      for (const [tenant, stored] of byTenant(copied)) this.#know(tenant, stored);
      this.#isLoaded = true;
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
    let states = this.#states.get(known);
    if (states === undefined) {
      states = known
        .map(
          ({ request, progress }) =>
            `${request.id}.${progress.done.length}.${request.cancelledMs === undefined}`,
        )
        .join();
      this.#states.set(known, states);
    }
    return `${this.#options.modeOf(tenant)},${states}`;
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

  /**
   * Stores a request and returns its id. From then on no query shows its rows. Throws rate_limited when too many requests of
   * the tenant wait.
   */
  create(tenant: string, asked: AskedDelete, options: CallOptions): Promise<string> {
    const { clock, log, requests } = this.#options;
    const work = async () => {
      this.#refuseTooMany(tenant);
      const { query, log: rows, boundsMs } = asked;
      for (let attempt = 0; attempt < maxIdTries; attempt++) {
        const id = randomUUID().slice(0, 8);
        if (this.#find(tenant, id) !== undefined) continue;
        const createdMs = clock.nowMs();
        const request: DeleteRequest = { id, tenant, query, boundsMs, createdMs };
        if (!(await requests.add(request, options))) continue;
        this.#put({ request, progress: noProgress, log: rows });
        await this.#addToCopy({ request, progress: noProgress });
        this.#received.inc({ user: tenant });
        const parts = partCount(request);
        log.info("took a delete request", { tenant, request: id, parts, ...shown(request) });
        return id;
      }
      throw unavailable("no free id for the delete request was found; try again");
    };
    return this.#inTurn(tenant, work, options);
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
    const work = async () => {
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
      const cancelled = { ...request, cancelledMs: clock.nowMs() };
      if (hasBegun) {
        await requests.replace(cancelled, options);
        this.#put({ ...known, request: cancelled });
      } else {
        await requests.remove(request, options);
        this.#drop(tenant, id);
      }
      await this.#addToCopy({ request: cancelled, progress });
      log.info("cancelled a delete request", { tenant, request: id, isForced, hasBegun });
    };
    return this.#inTurn(tenant, work, options);
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

  /**
   * The requests of a tenant that are open, or were finished less than a day ago: copies that are used rarely may still have
   * their rows.
   */
  recent(tenant: string): readonly KnownRequest[] {
    const { clock, modeOf } = this.#options;
    if (modeOf(tenant) === "disabled") return [];
    const sinceMs = clock.nowMs() - recentMs;
    const known = this.#known.get(tenant) ?? [];
    return known.filter((one) => !isFinished(one) || finishedMs(one) >= sinceMs);
  }

  /** The tenants that ever asked for a deletion. */
  tenants(): readonly string[] {
    return [...this.#known.keys()];
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
    const { clock, log, requests } = this.#options;
    const work = async () => {
      const known = this.#find(tenant, id);
      // It may have been cancelled in the meantime.
      if (known === undefined || isFinished(known) || parts.length === 0) return;
      const done = [...new Set([...known.progress.done, ...parts])].sort((a, b) => a - b);
      const isLast = done.length >= partCount(known.request);
      const progress: DeleteProgress = isLast ? { done, doneMs: clock.nowMs() } : { done };
      await requests.saveProgress(known.request, progress, options);
      const next = { ...known, progress };
      this.#put(next);
      if (!isFinished(next)) return;
      this.#processed.inc({ user: tenant });
      log.info("carried out a delete request", { tenant, request: id });
    };
    return this.#inTurn(tenant, work, options);
  }

  /**
   * Opens the requests again that were processed since a time, because rows came back that nobody could see then. `unknown` are
   * those whose text was taken out: nobody can tell their rows any more.
   */
  async reopen(sinceMs: number, options: CallOptions): Promise<ReopenedRequests> {
    const opened: DeleteRequest[] = [];
    const unknown: DeleteRequest[] = [];
    const isMeant = (known: KnownRequest) =>
      isFinished(known) &&
      known.request.cancelledMs === undefined &&
      finishedMs(known) >= sinceMs &&
      this.#options.modeOf(known.request.tenant) === "filter-and-delete";
    for (const { request } of [...this.#known.values()].flat().filter(isMeant)) {
      if (request.redactedMs !== undefined) unknown.push(request);
      else {
        await this.#inTurn(request.tenant, () => this.#reopen(request, options), options);
        opened.push(request);
      }
    }
    return { opened, unknown };
  }

  async #reopen({ tenant, id }: DeleteRequest, options: CallOptions): Promise<void> {
    const known = this.#find(tenant, id);
    if (known === undefined) return;
    await this.#options.requests.saveProgress(known.request, noProgress, options);
    this.#put({ ...known, progress: noProgress });
  }

  /** Takes the texts of requests out that have been finished for long, in the store and in the copy of this machine. */
  async redact(options: CallOptions, owns: (tenant: string) => boolean): Promise<void> {
    const { clock, redactPeriodMs } = this.#options;
    const latestMs = clock.nowMs() - redactPeriodMs;
    const isDue = (known: KnownRequest) =>
      isFinished(known) && known.request.redactedMs === undefined && finishedMs(known) <= latestMs;
    for (const [tenant, all] of [...this.#known]) {
      if (this.#newer.has(tenant) || !owns(tenant)) continue;
      for (const { request } of all.filter(isDue))
        await this.#inTurn(tenant, () => this.#redact(request, options), options);
    }
    await this.#keepCopy();
  }

  async #redact({ tenant, id }: DeleteRequest, options: CallOptions): Promise<void> {
    const { clock, log, requests } = this.#options;
    const known = this.#find(tenant, id);
    if (known === undefined) return;
    const request = { ...known.request, query: redactedQuery, redactedMs: clock.nowMs() };
    await requests.replace(request, options);
    this.#put({ ...known, request, log: parseDeleteQuery(redactedQuery) });
    this.#isCopyStale = true;
    log.info("took out the text of a delete request", { tenant, request: id });
  }

  /** Runs a change or a read of a tenant's requests after those before it. */
  async #inTurn<T>(tenant: string, work: () => Promise<T>, { signal }: CallOptions): Promise<T> {
    const turn = this.#tenantTurns.get(tenant) ?? new Semaphore(1);
    this.#tenantTurns.set(tenant, turn);
    try {
      return await turn.run(work, signal);
    } finally {
      if (turn.free === 1 && turn.waiting === 0) this.#tenantTurns.delete(tenant);
    }
  }

  async #refreshTenant(tenant: string, options: CallOptions): Promise<void> {
    const loaded = await this.#options.requests.load(options, tenant);
    const lost = await this.#lostOf(loaded.damaged);
    this.#know(tenant, [...loaded.requests, ...lost]);
    this.#touched.add(tenant);
    this.#setNewer(tenant, loaded.newer.get(tenant));
    for (const one of lost) await this.#rewrite(one, options);
  }

  #refuseTooMany(tenant: string): void {
    const limit = this.#options.pendingLimitOf(tenant);
    const known = this.#known.get(tenant) ?? [];
    const count = limit === 0 ? 0 : known.filter((one) => !isFinished(one)).length;
    if (count < limit || limit === 0) return;
    throw new SkaldError(
      "rate_limited",
      `too many pending delete requests (limit: ${limit}, pending: ${count}); wait until some are processed, cancel some, delete with fewer and wider queries, or raise limits_config.max_pending_delete_requests`,
    );
  }

  #setNewer(tenant: string, error: unknown): void {
    if (error === undefined) this.#newer.delete(tenant);
    else this.#newer.set(tenant, error);
  }

  /** Takes over what the store has of a tenant. Requests that did not change stay as they are, parsed. */
  #know(tenant: string, stored: readonly StoredRequest[]): void {
    const before = this.#known.get(tenant) ?? [];
    const byId = new Map(before.map((one) => [one.request.id, one]));
    const known = stored
      .flatMap((one) => {
        const old = byId.get(one.request.id);
        return old !== undefined && isSame(old, one) ? [old] : this.#parse(one);
      })
      .sort((a, b) => (isAfter(a.request, b.request) ? 1 : -1));
    if (known.length === before.length && known.every((one, i) => one === before[i])) return;
    this.#isCopyStale = true;
    if (known.length === 0) this.#known.delete(tenant);
    else this.#known.set(tenant, known);
  }

  /** The requests that are damaged in the store and known to this process or its copy. */
  async #lostOf(damaged: ReadonlySet<string>): Promise<StoredRequest[]> {
    const { copy, requests } = this.#options;
    if (damaged.size === 0) return [];
    const known = this.#isLoaded ? [...this.#known.values()].flat() : ((await copy?.read()) ?? []);
    return known.filter(({ request }) => damaged.has(requests.keyOf(request)));
  }

  /** Writes a request that is damaged in the store again, unless it was cancelled in the meantime. */
  async #rewrite({ request }: StoredRequest, options: CallOptions): Promise<void> {
    const { log, requests } = this.#options;
    const { tenant, id } = request;
    if (this.#find(tenant, id) === undefined) return;
    await requests.replace(request, options);
    log.warn("wrote a damaged delete request again", { tenant, request: id });
  }

  /** Writes the copy anew when a read found changes. Errors are only logged, because the store has all requests. */
  async #keepCopy(): Promise<void> {
    if (!this.#isCopyStale) return;
    this.#isCopyStale = false;
    const known = [...this.#known.values()].flat();
    const requests = known.map(({ request, progress }) => ({ request, progress }));
    await this.#tryCopy(async (copy) => {
      const copied = await copy.read();
      if (copied === undefined || textOf(copied) !== textOf(requests)) await copy.write(requests);
    });
  }

  async #addToCopy(changed: StoredRequest): Promise<void> {
    await this.#tryCopy((copy) => copy.append(changed));
  }

  async #tryCopy(work: (copy: LocalCopy) => Promise<void>): Promise<void> {
    const { copy, log } = this.#options;
    try {
      if (copy !== undefined) await work(copy);
    } catch (error) {
      this.#isCopyStale = true;
      log.warn("the copy of the delete requests cannot be written", { error });
    }
  }

  #find(tenant: string, id: string): KnownRequest | undefined {
    return this.#known.get(tenant)?.find(({ request }) => request.id === id);
  }

  #put(changed: KnownRequest): void {
    const { tenant, id } = changed.request;
    const requests = (this.#known.get(tenant) ?? []).filter(({ request }) => request.id !== id);
    // They are in order of creation, and new ones come last.
    let at = requests.length;
    while (at > 0 && isAfter(requests[at - 1]!.request, changed.request)) at--;
    requests.splice(at, 0, changed);
    this.#known.set(tenant, requests);
    this.#touched.add(tenant);
  }

  #drop(tenant: string, id: string): void {
    const others = (this.#known.get(tenant) ?? []).filter(({ request }) => request.id !== id);
    this.#known.set(tenant, others);
    this.#touched.add(tenant);
  }

  #parse({ request, progress }: StoredRequest): KnownRequest[] {
    try {
      return [{ request, progress, log: parseDeleteQuery(request.query) }];
    } catch (error) {
      const { tenant, id } = request;
      const message = "a delete request cannot be read and hides nothing";
      this.#options.log.error(message, { tenant, request: id, error });
      return [];
    }
  }
}

function byTenant(stored: readonly StoredRequest[]): Map<string, StoredRequest[]> {
  const found = new Map<string, StoredRequest[]>();
  for (const one of stored) {
    const requests = found.get(one.request.tenant);
    if (requests === undefined) found.set(one.request.tenant, [one]);
    else requests.push(one);
  }
  return found;
}

function isAfter(a: DeleteRequest, b: DeleteRequest): boolean {
  return a.createdMs > b.createdMs || (a.createdMs === b.createdMs && a.id > b.id);
}

function isSame(known: KnownRequest, { request, progress }: StoredRequest): boolean {
  if (known.request === request && known.progress === progress) return true;
  const shape = ({ id, query, boundsMs, createdMs, cancelledMs, redactedMs }: DeleteRequest) =>
    JSON.stringify([id, query, boundsMs, createdMs, cancelledMs, redactedMs]);
  return (
    shape(known.request) === shape(request) &&
    known.progress.doneMs === progress.doneMs &&
    JSON.stringify(known.progress.done) === JSON.stringify(progress.done)
  );
}

function shown({ boundsMs }: DeleteRequest) {
  const [start, end] = [boundsMs[0], boundsMs.at(-1)].map((ms) => new Date(ms as number));
  return { start: start?.toISOString(), end: end?.toISOString() };
}

/** Requests and their progress as a text that does not depend on their order. */
function textOf(requests: readonly StoredRequest[]): string {
  return requests
    .map((one) => JSON.stringify(one))
    .sort()
    .join("\n");
}
