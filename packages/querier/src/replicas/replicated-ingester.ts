import type {
  AnswerOf,
  CallOptions,
  Catalog,
  HeldChanges,
  HeldChangesRequest,
  HeldKind,
  HeldRows,
  ScanOptions,
  Selection,
  SelectRequest,
  SourceRef,
  TaskOf,
  WindowDigests,
} from "@skald/contracts";
import {
  type Clock,
  errorCodeOf,
  internal,
  notFound,
  type SteadyClock,
  steadyClock,
  systemClock,
  unavailable,
} from "@skald/model";
import { sleep as defaultSleep, type Sleep } from "@skald/runtime";
import { refsOf } from "@skald/scan";
import { splitToken, uniteChanges } from "../find/find-changes.js";
import { instanceOf } from "../find/order-sources.js";
import { wishOf } from "./agreement.js";

/** An ingester that did not answer is not asked again for so long, as long as the others are enough. */
const suspectMs = 10_000;
/** When enough ingesters have answered the others are waited for so long. */
const patienceMs = 1000;
/** The most views that are remembered until they are released: queries end long before there are as many. */
const maxViews = 10_000;

/** Whom to ask so that everything that was written is seen; see the ring's `ReadSet`. */
export interface ReplicaSet<Instance extends Replica = Replica> {
  readonly instances: readonly Instance[];
  /** Answers that may be missing; with `byZone`, zones whose answers may be missing. */
  readonly maxMissing: number;
  readonly byZone: boolean;
}

export interface Replica {
  readonly id: string;
  readonly zone: string;
}

export interface ReplicatedIngesterDeps<Instance extends Replica = Replica> {
  /** The ingesters that may hold rows of a tenant. Throws unavailable when there are too few. */
  readonly replicasOf: (tenant: string) => ReplicaSet<Instance>;
  /** The ingester that an instance is; called for each call. */
  readonly connect: (instance: Instance) => HeldRows;
  /** Queries that end longer ago than this do not ask ingesters, unless one holds rows that are as old; 0: all do. */
  readonly queryWithinMs: number;
  /** No ingester holds a row from before this time, in ms since the epoch; by default none holds any that is not recent. */
  readonly oldestMs?: () => number;
  /** Receives each ingester that did not answer. */
  readonly onLost?: (instance: string, error: unknown) => void;
  readonly clock?: SteadyClock;
  readonly timeOfDay?: Clock;
  readonly sleep?: Sleep;
}

type AskOne<Instance, Answer> = (
  ingester: HeldRows,
  options: CallOptions,
  instance: Instance,
) => Promise<Answer>;

interface Asking<Instance, Answer> {
  readonly call: AskOne<Instance, Answer>;
  readonly onTooFew: (answers: ReadonlyMap<string, Answer>) => void;
}

interface OpenView {
  readonly instance: string;
  readonly view: string;
}

/**
 * The ingesters of a ring as one that holds what any of them holds. A view is whole, or it is refused: each row is on a
 * quorum of ingesters, so that as many as a quorum lacks may be missing. References say which ingester they are of, and
 * one call is about sources of one ingester. An ingester that is lost while a query runs makes its sources `not_found`, so
 * that the query is run again, on what the others hold.
 */
export class ReplicatedIngester<Instance extends Replica = Replica> implements HeldRows {
  readonly #deps: ReplicatedIngesterDeps<Instance>;
  readonly #clock: SteadyClock;
  readonly #instances = new Map<string, Instance>();
  /** By id, until when it is not asked. */
  readonly #suspects = new Map<string, number>();
  readonly #views = new Map<string, readonly OpenView[]>();
  #opened = 0;

  constructor(deps: ReplicatedIngesterDeps<Instance>) {
    this.#deps = deps;
    this.#clock = deps.clock ?? steadyClock;
  }

  async select(request: SelectRequest, { signal }: CallOptions): Promise<Selection> {
    const oldestNs = this.#oldestNs();
    if (oldestNs !== undefined && request.toNs < oldestNs) return { sources: [] };
    const compare = request.share === undefined ? undefined : wishOf(request);
    const asked = compare === undefined ? request : { ...request, compare };
    const answers = await this.#askAll(
      request.tenant,
      (ingester, options) => ingester.select(asked, options),
      signal,
      (found) => this.#releaseAll(found),
    );
    return this.#unite(answers);
  }

  /** A row is on a quorum of ingesters, so that those who answered know of each, if they are the same that answered before. */
  async changes(request: HeldChangesRequest, { signal }: CallOptions): Promise<HeldChanges> {
    const oldestNs = this.#oldestNs();
    const asked = request.spans.map((span) => ({ span, since: splitToken(span.since) }));
    const answers = await this.#askAll(
      request.tenant,
      (ingester, options, { id }) => {
        const spans = asked.map(({ span: { since: _, ...range }, since }) => {
          const own = since.get(id);
          return own === undefined ? range : { ...range, since: own };
        });
        return ingester.changes({ tenant: request.tenant, spans }, options);
      },
      signal,
    );
    const spans = asked.map(({ span, since }, at) => uniteChanges(span, since, answers, at));
    return { spans, ...(oldestNs === undefined ? {} : { lookedFromNs: oldestNs }) };
  }

  /** Queries of nothing but rows that are older ask no ingester; undefined: all do. */
  #oldestNs(): bigint | undefined {
    const { queryWithinMs, timeOfDay = systemClock, oldestMs } = this.#deps;
    if (queryWithinMs <= 0) return undefined;
    const recentMs = timeOfDay.nowMs() - queryWithinMs;
    const sinceMs = Math.min(recentMs, oldestMs?.() ?? Number.POSITIVE_INFINITY);
    return BigInt(Math.floor(sinceMs)) * 1_000_000n;
  }

  /** Asks those of the read set of a tenant. `onTooFew` is given the answers that are of no use. */
  #askAll<Answer>(
    tenant: string,
    call: AskOne<Instance, Answer>,
    signal: AbortSignal,
    onTooFew: (answers: ReadonlyMap<string, Answer>) => void = () => undefined,
  ): Promise<ReadonlyMap<string, Answer>> {
    const set = this.#deps.replicasOf(tenant);
    for (const instance of set.instances) this.#instances.set(instance.id, instance);
    const well = set.instances.filter(({ id }) => !this.#isSuspect(id));
    // Where too few are left, the others may have come back.
    const asked = isEnough(set, new Set(well.map(({ id }) => id))) ? well : set.instances;
    return this.#ask(set, asked, { call, onTooFew }, signal);
  }

  async release(view: string, options: CallOptions): Promise<void> {
    const parts = this.#views.get(view) ?? [];
    this.#views.delete(view);
    await Promise.allSettled(
      parts.map((part) => this.#at(part.instance, (one) => one.release(part.view, options))),
    );
  }

  run<K extends HeldKind>(kind: K, task: TaskOf<K>, options: ScanOptions): Promise<AnswerOf<K>> {
    const names = new Set(refsOf<SourceRef>(task).map(instanceOf));
    const [name] = names;
    if (names.size !== 1 || name === undefined) {
      return Promise.reject(internal("a call is about sources of several ingesters"));
    }
    return this.#at(name, (one) => one.run(kind, task, options));
  }

  /** Asks all, and waits for those that are slow only while too few have answered, and a little longer. */
  async #ask<Answer>(
    set: ReplicaSet<Instance>,
    asked: readonly Instance[],
    { call: ask, onTooFew }: Asking<Instance, Answer>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Answer>> {
    const stop = new AbortController();
    const both = AbortSignal.any([signal, stop.signal]);
    const answers = new Map<string, Answer>();
    const failures = new Map<string, unknown>();
    const sleep = this.#deps.sleep ?? defaultSleep;
    await new Promise<void>((resolve) => {
      let isPatient = true;
      const look = () => {
        if (signal.aborted || answers.size + failures.size === asked.length) resolve();
        if (!isPatient || !isEnough(set, new Set(answers.keys()))) return;
        isPatient = false;
        void sleep(patienceMs, both).then(resolve, resolve);
      };
      signal.addEventListener("abort", look, { once: true });
      look();
      for (const instance of asked) {
        const call = ask(this.#deps.connect(instance), { signal: both }, instance);
        void call
          .then(
            (answer) => answers.set(instance.id, answer),
            (error: unknown) => failures.set(instance.id, error),
          )
          .finally(look);
      }
    });
    signal.throwIfAborted();
    const found = new Map(answers);
    const lost = asked.filter(({ id }) => !found.has(id));
    // By now nobody waits for those that are slow.
    const failed = new Map(failures);
    stop.abort();
    for (const { id } of lost)
      this.#suspect(id, failed.get(id) ?? unavailable("no answer in time"));
    if (isEnough(set, new Set(found.keys()))) return found;
    onTooFew(found);
    const refused = [...failed.values()].find((error) => errorCodeOf(error) !== "unavailable");
    if (refused !== undefined) throw refused;
    const names = lost.map(({ id }) => id).join(", ");
    throw unavailable(
      `too few ingesters answered: ${found.size} of ${set.instances.length}, without ${names}; the answer would not be whole`,
      { cause: [...failed.values()][0] },
    );
  }

  #unite(answers: ReadonlyMap<string, Selection>): Selection {
    const sources: SourceRef[] = [];
    const views: OpenView[] = [];
    const windows: WindowDigests[] = [];
    let completeFromNs: bigint | undefined;
    let isKnown = true;
    let storedAgoMs: number | undefined;
    for (const [instance, selection] of answers) {
      const agoMs = selection.storedAgoMs;
      if (agoMs !== undefined && (storedAgoMs === undefined || agoMs < storedAgoMs))
        storedAgoMs = agoMs;
      if (selection.view !== undefined) views.push({ instance, view: selection.view });
      for (const ref of selection.sources) sources.push(withInstance(ref, instance));
      for (const one of selection.compared?.windows ?? []) windows.push({ ...one, instance });
      const from = selection.completeFromNs;
      if (from === undefined) isKnown = false;
      // Any of them may be the only one here that a row was written to.
      else if (completeFromNs === undefined || from > completeFromNs) completeFromNs = from;
    }
    const known = isKnown && completeFromNs !== undefined ? { completeFromNs } : {};
    const compared = windows.length === 0 ? {} : { compared: { windows } };
    const ago = storedAgoMs === undefined ? {} : { storedAgoMs };
    return { ...this.#open(views), sources, ...known, ...ago, ...compared };
  }

  #open(views: readonly OpenView[]): Pick<Selection, "view"> {
    if (views.length === 0) return {};
    const [oldest] = this.#views.keys();
    // Ingesters forget it by themselves.
    if (this.#views.size >= maxViews && oldest !== undefined) this.#views.delete(oldest);
    const view = `r${this.#opened++}`;
    this.#views.set(view, views);
    return { view };
  }

  #releaseAll(answers: ReadonlyMap<string, Selection>): void {
    const { view } = this.#unite(answers);
    if (view !== undefined) void this.release(view, { signal: new AbortController().signal });
  }

  async #at<T>(id: string, call: (ingester: HeldRows) => Promise<T>): Promise<T> {
    const instance = this.#instances.get(id);
    if (instance === undefined) throw notFound(`the ingester ${id} is gone`);
    try {
      return await call(this.#deps.connect(instance));
    } catch (error) {
      if (errorCodeOf(error) !== "unavailable") throw error;
      this.#suspect(id, error);
      throw notFound(`the ingester ${id} was lost while a query ran`);
    }
  }

  #suspect(id: string, error: unknown): void {
    this.#suspects.set(id, this.#clock.elapsedMs() + suspectMs);
    this.#deps.onLost?.(id, error);
  }

  #isSuspect(id: string): boolean {
    const untilMs = this.#suspects.get(id);
    if (untilMs === undefined) return false;
    if (this.#clock.elapsedMs() < untilMs) return true;
    this.#suspects.delete(id);
    return false;
  }
}

/** Whether the answers of some are all that is needed. */
export function isEnough({ instances, maxMissing, byZone }: ReplicaSet, ids: ReadonlySet<string>) {
  const missing = instances.filter(({ id }) => !ids.has(id));
  const count = byZone ? new Set(missing.map(({ zone }) => zone)).size : missing.length;
  return count <= maxMissing;
}

function withInstance(ref: SourceRef, instance: string): SourceRef {
  if (ref.kind === "head") return { ...ref, instance };
  const { location } = ref;
  return location.kind === "file" ? { ...ref, location: { ...location, instance } } : ref;
}

/**
 * A catalog whose listings are not older than the last leave of an ingester that had all its rows stored: queries do not
 * miss that one any more, so what they read has to have its rows. `sinceLeftMs` tells how long ago that was, in ms.
 */
export function listedSince(catalog: Catalog, sinceLeftMs: () => number): Catalog {
  const young = <Request extends { readonly maxAgeMs?: number }>(request: Request): Request => {
    const maxAgeMs = Math.min(request.maxAgeMs ?? Number.POSITIVE_INFINITY, sinceLeftMs());
    return maxAgeMs === Number.POSITIVE_INFINITY ? request : { ...request, maxAgeMs };
  };
  const { count } = catalog;
  return {
    list: (request, options) => catalog.list(young(request), options),
    ...(count === undefined
      ? {}
      : { count: (request, options) => count.call(catalog, young(request), options) }),
  };
}
