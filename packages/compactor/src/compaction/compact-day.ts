import { errorCodeOf, type SegmentRef } from "@skald/model";
import { type Logger, runConcurrently, Semaphore } from "@skald/runtime";
import {
  type AddedSegment,
  type DayChange,
  DayIndex,
  type DroppedRows,
  dayIndexKey,
  type EditedDay,
  type GoneSegment,
  type IndexedSegment,
  isMergedId,
  OpenedDays,
  objectRange,
  openSegmentAsync,
  parseSegmentKey,
  replacedBy,
} from "@skald/storage";
import { Batches } from "./batches.js";
import { type DayState, readDay, type Table } from "./day-state.js";
import {
  type ListedSegment,
  type PlanBounds,
  planMerges,
  planRebuild,
  planSweep,
  type SweepBounds,
} from "./plan.js";
import {
  goneOf,
  type MergeDeps,
  type MergeInput,
  type MergeThreads,
  SegmentMerge,
} from "./segment-merge.js";

interface Cancellable {
  readonly signal: AbortSignal;
}

interface DayRun extends Cancellable {
  /** Checked before each long piece of work. */
  readonly isOwn?: () => boolean;
}

/** The long work of a compactor, on other threads. */
export interface CompactionThreads extends MergeThreads {
  edit(change: DayChange, options: Cancellable): Promise<EditedDay>;
  open(name: string, bytes: Uint8Array): Promise<DayIndex["image"]>;
}

/** Retention and deletion for the segments of a day. It is asked once in each run over the day. */
export interface DayRules {
  changesOf(day: DayIndex, options: Cancellable): Promise<DayRemovals>;
  /** Throws `newer_version` for a day that must be left alone, because only a later program knows all rules of its tenant. */
  refuseNewer?(table: Table): void;
  /** Whether a day needs a run now. */
  isDue?(table: Table): boolean;
  /** Called once the index is written. `segments` were dropped, or written again without the rows. */
  onDone?(table: Table, segments: readonly string[]): void;
}

export interface DayRemovals {
  /** Ids of segments that lose all rows. */
  readonly drop: readonly string[];
  /** Rows to remove from segments, by id. */
  readonly rewrite: ReadonlyMap<string, DroppedRows>;
}

export interface DayCompactionDeps extends MergeDeps {
  readonly threads: CompactionThreads;
  readonly log: Logger;
  readonly bounds: PlanBounds &
    SweepBounds & {
      readonly settleMs: number;
      readonly deletesAtOnce: number;
      /** Merges at a time, of all days. */
      readonly mergesAtOnce: number;
    };
  readonly rules?: DayRules | undefined;
  /** Called after each merge. */
  readonly onMerged: (merge: { readonly inputs: number; readonly bytes: number }) => void;
  readonly onDamaged: () => void;
  readonly onDeleted: (key: string) => void;
}

/** Another compactor changed the day first. The next run over the day sees its result. */
export class OtherWasFirst extends Error {}

interface Changes {
  readonly add?: readonly AddedSegment[];
  readonly remove?: readonly GoneSegment[];
  readonly forget?: readonly string[];
}

/** Indexes of segments to fetch at a time. */
const indexesAtOnce = 16;
const nsPerMs = 1_000_000n;
const dayMs = 86_400_000;

/**
 * Compacts days. The index is the only truth: a merge writes its file, then the next generation of the index, if nobody
 * else has written that. Only then do queries see the file. An object is deleted once the newest index has listed it as gone for the
 * grace time. So a compactor may stop, or meet another one, at every step.
 */
export class DayCompaction {
  readonly #deps: DayCompactionDeps;
  readonly #opened: OpenedDays;
  readonly #merges: Semaphore;
  /** Ids of unreadable segments. */
  readonly #damaged = new Set<string>();

  constructor(deps: DayCompactionDeps) {
    this.#deps = deps;
    this.#merges = new Semaphore(deps.bounds.mergesAtOnce);
    this.#opened = new OpenedDays({
      store: deps.store,
      decode: (name, bytes) => deps.threads.open(name, bytes),
      onCorrupt: (error, key) => deps.log.error("a day index is damaged", { key, error }),
    });
  }

  /**
   * Deletes old objects of a day, updates its index, and merges segments, as long as it owns the day. Throws
   * OtherWasFirst when another compactor does the same, and `newer_version` for a file of a later program. It reads files before it
   * deletes anything.
   */
  async run(table: Table, { signal, isOwn = () => true }: DayRun): Promise<void> {
    const { store, locate, bounds, clock, rules } = this.#deps;
    rules?.refuseNewer?.(table);
    const reader = { store, locate, opened: this.#opened };
    let day = await readDay(table, reader, { signal });
    if (day.isDamaged) day = await this.#rebuild(day, signal);
    const { deletes, orphans, forget } = planSweep(day.index, day.objects, clock.nowMs(), bounds);
    const add = await this.#young(day, signal);
    if (add.length + orphans.length + forget.length > 0)
      day = await this.#publish(day, { add, remove: orphans, forget }, signal);
    await runConcurrently(deletes, bounds.deletesAtOnce, signal, async (key, signal) => {
      await store.delete(key, { signal });
      this.#deps.onDeleted(key);
    });
    if (!isOwn()) return;
    day = await this.#applyRules(day, signal);
    for (;;) {
      const merges = this.#plan(day).map((group) => group.map((segment) => ({ segment })));
      if (merges.length === 0) return;
      day = await this.#mergeAll(day, merges, { signal, isOwn });
      if (!isOwn()) return;
    }
  }

  /** Writes the generation after a damaged one, from the one before it and the objects in the bucket. */
  async #rebuild(day: DayState, signal: AbortSignal): Promise<DayState> {
    const { store, locate, clock, log } = this.#deps;
    const unknown: ListedSegment[] = [];
    const refs = new Map<string, AddedSegment>();
    const listed = new Set<string>();
    for (const { key, sizeBytes, modifiedMs } of day.objects) {
      const parsed = parseSegmentKey(key);
      if (parsed === undefined) continue;
      listed.add(parsed.id);
      if (day.index?.knows(parsed.id) === true) continue;
      const ref: SegmentRef = { kind: "segment", ...parsed, sizeBytes, location: locate(key) };
      const level = isMergedId(parsed.id) ? 1 : 0;
      if (level === 0) {
        refs.set(ref.id, { ref, level });
        unknown.push({ ...parsed, modifiedMs });
        continue;
      }
      const { image } = await openSegmentAsync(objectRange(store, key, sizeBytes), ref, { signal });
      refs.set(ref.id, { ref, image, level });
      unknown.push({ ...parsed, modifiedMs, replaces: replacedBy(image) });
    }
    const known = day.index?.segments ?? [];
    const plan = planRebuild(known, unknown, { listed, nowMs: clock.nowMs() });
    const wanted = new Set(plan.add);
    const young = [...refs.values()].filter(({ ref, level }) => level === 0 && wanted.has(ref.id));
    const add = [
      ...(await this.#young({ ...day, young: young.map(({ ref }) => ref) }, signal)),
      ...[...refs.values()].filter(({ ref, level }) => level > 0 && wanted.has(ref.id)),
    ];
    log.warn("rebuilds a damaged day index", { tenant: day.tenant, segments: listed.size });
    return this.#publish(day, { add, remove: plan.remove }, signal);
  }

  #plan({ index, baseNs }: DayState): IndexedSegment[][] {
    const { bounds, clock } = this.#deps;
    const sound = (index?.segments ?? []).filter(({ id }) => !this.#damaged.has(id));
    const isSettled = Number(baseNs / nsPerMs) + dayMs + bounds.settleMs < clock.nowMs();
    return planMerges(sound, isSettled, bounds);
  }

  /** Opens young segments for the index. */
  async #young({ young }: DayState, signal: AbortSignal): Promise<AddedSegment[]> {
    const added: AddedSegment[] = [];
    const left = young.filter(({ id }) => !this.#damaged.has(id));
    const next = async (): Promise<void> => {
      for (let ref = left.shift(); ref !== undefined; ref = left.shift()) {
        const image = await this.#imageOf(ref, signal);
        if (image !== "damaged") added.push({ ref, level: 0, ...image });
      }
    };
    await Promise.all(Array.from({ length: indexesAtOnce }, next));
    return added;
  }

  /** Fetches the index of a segment. The thread that makes the day index opens local files itself. */
  async #imageOf(ref: SegmentRef, signal: AbortSignal) {
    const { location } = ref;
    if (location.kind === "file") return {};
    try {
      const range = objectRange(this.#deps.store, location.key, ref.sizeBytes);
      return { image: (await openSegmentAsync(range, ref, { signal })).image };
    } catch (error) {
      if (errorCodeOf(error) !== "internal") throw error;
      this.#setAside(ref.id, (error as Error).message);
      return "damaged";
    }
  }

  async #applyRules(day: DayState, signal: AbortSignal): Promise<DayState> {
    const { rules, clock } = this.#deps;
    if (rules === undefined || day.index === undefined) return day;
    const { drop, rewrite } = await rules.changesOf(day.index, { signal });
    const sinceMs = clock.nowMs();
    const remove = findAll(day.index, drop).map((segment) => goneOf(segment, sinceMs, undefined));
    const left = remove.length === 0 ? day : await this.#publish(day, { remove }, signal);
    const merges = findAll(day.index, [...rewrite.keys()]).map((segment) => [
      { segment, dropped: rewrite.get(segment.id) },
    ]);
    const next = await this.#mergeAll(left, merges, { signal });
    rules.onDone?.(
      day,
      [...drop, ...rewrite.keys()].filter((id) => !this.#damaged.has(id)),
    );
    return next;
  }

  /** Merges groups without a segment in common, several at a time. Begins no further one when the day is not its own any more. */
  async #mergeAll(
    day: DayState,
    groups: readonly (readonly MergeInput[])[],
    { signal, isOwn = () => true }: DayRun,
  ): Promise<DayState> {
    const written = new Batches(day, (before, changes: readonly Changes[]) =>
      this.#publish(before, joined(changes), signal),
    );
    const { mergesAtOnce } = this.#deps.bounds;
    await runConcurrently(groups, mergesAtOnce, signal, (inputs, signal) =>
      this.#merges.run(async () => {
        if (isOwn()) await this.#merge(written, inputs, signal);
      }, signal),
    );
    return written.state;
  }

  async #merge(
    written: Batches<DayState, Changes>,
    inputs: readonly MergeInput[],
    signal: AbortSignal,
  ): Promise<void> {
    const merge = new SegmentMerge(this.#deps, written.state, inputs);
    try {
      const { add, remove, bytes } = await merge.run(signal);
      await written.add({ add, remove });
      this.#deps.onMerged({ inputs: inputs.length, bytes });
    } catch (error) {
      const damaged = merge.damagedBy(error);
      if (damaged === undefined) throw error;
      this.#setAside(damaged.id, (error as Error).message, written.state);
    } finally {
      await merge.clear();
    }
  }

  /** Writes the next generation of the index. Throws OtherWasFirst when it exists. */
  async #publish(day: DayState, changes: Changes, signal: AbortSignal): Promise<DayState> {
    const { store, threads, clock, log } = this.#deps;
    const { tenant, baseNs, index } = day;
    const generation = day.generation + 1;
    const { add = [], remove = [], forget = [] } = changes;
    const edited = await threads.edit(
      {
        ...{ tenant, baseNs, add, remove, forget, generation },
        base: index?.image,
        writtenMs: clock.nowMs(),
      },
      { signal },
    );
    for (const { id, reason } of edited.damaged) this.#setAside(id, reason);
    const key = dayIndexKey({ tenant, baseNs, generation });
    const outcome = await store.put(key, edited.bytes, { ifAbsent: true, signal });
    if (outcome === "exists") throw new OtherWasFirst(`another compactor has written ${key}`);
    log.debug("wrote a day index", { key, added: add.length, removed: remove.length });
    return { ...day, index: new DayIndex(edited.image), generation, young: [], isDamaged: false };
  }

  #setAside(id: string, reason: string, facts: Partial<Table> = {}): void {
    if (this.#damaged.has(id)) return;
    this.#damaged.add(id);
    this.#deps.onDamaged();
    const { tenant } = facts;
    this.#deps.log.error("a segment is damaged; it is not merged", { tenant, segment: id, reason });
  }
}

function joined(changes: readonly Changes[]): Changes {
  return {
    add: changes.flatMap(({ add = [] }) => add),
    remove: changes.flatMap(({ remove = [] }) => remove),
  };
}

function findAll(index: DayIndex, ids: readonly string[]): IndexedSegment[] {
  return ids.flatMap((id) => index.find(id) ?? []);
}
