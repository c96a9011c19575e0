import { hash } from "node:crypto";
import type { CallOptions, DroppedRow, Tailer, TailRequest, TailRows } from "@skald/contracts";
import { type LogResult, lineAt } from "@skald/logql";
import { type Clock, errorCodeOf, type Labels, systemClock, unavailable } from "@skald/model";
import { sleep as defaultSleep, type Sleep } from "@skald/runtime";
import { isEnough, type Replica, type ReplicaSet } from "./replicated-ingester.js";

/** Pause between looks at the ring: who is new is asked then, and who was lost is asked again. */
const lookMs = 3000;
/** An ingester that has dropped rows counts as one that lacks them for so long. */
const slowMs = 10_000;
/** Dropped rows that may be with another ingester, at most. */
const maxHeldDropped = 1000;
/** What an ingester fails with that others may still do. */
const lostCodes: readonly string[] = ["unavailable", "internal", "deadline_exceeded", "cancelled"];

export interface ReplicatedTailerDeps<Instance extends Replica = Replica> {
  /** The ingesters that may get rows of a tenant. Throws unavailable when there are too few. */
  readonly replicasOf: (tenant: string) => ReplicaSet<Instance>;
  /** The ingester that an instance is; called for each tail. */
  readonly connect: (instance: Instance) => Tailer;
  /** Receives each ingester that was lost. */
  readonly onLost?: (instance: string, error: unknown) => void;
  readonly clock?: Clock;
  readonly sleep?: Sleep;
}

/**
 * Follows all ingesters of a ring as if they were one. The first item comes once enough of them follow that every later row
 * reaches one; rows that came in the meantime may come too. Each row comes once. The next look at the ring adds instances that
 * joined and asks failed ones again. While a quorum follows nothing is dropped. Without a quorum one dropped row with the labels
 * that the matchers ask for says so, once each time. The tail ends when no instance is left.
 */
export class ReplicatedTailer<Instance extends Replica = Replica> implements Tailer {
  readonly #deps: ReplicatedTailerDeps<Instance>;

  constructor(deps: ReplicatedTailerDeps<Instance>) {
    this.#deps = deps;
  }

  tail(request: TailRequest, { signal }: CallOptions): AsyncIterable<TailRows> {
    return new OpenTail(this.#deps, request, signal).read();
  }
}

interface Offer {
  readonly id: string;
  readonly item: TailRows;
  readonly taken: () => void;
}

/** One tail and the ingesters that it follows; of each one item waits. */
class OpenTail<Instance extends Replica> {
  readonly #deps: ReplicatedTailerDeps<Instance>;
  readonly #request: TailRequest;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #window = new RowWindow();
  #set: ReplicaSet<Instance> = { instances: [], maxMissing: 0, byZone: false };
  /** Whom it follows, and whether they said their first. */
  readonly #followed = new Map<string, boolean>();
  /** Whom it does not follow any more, with what they failed with. */
  readonly #lost = new Map<string, unknown>();
  /** Who dropped rows, and when. */
  readonly #slow = new Map<string, number>();
  #held: DroppedRow[] = [];
  #dropped: DroppedRow[] = [];
  /** Rows that were dropped besides those. */
  #heldUnnamed = 0;
  #unnamed = 0;
  #isWhole = true;
  #refusal: { readonly error: unknown } | undefined;
  readonly #offers: Offer[] = [];
  #wake: () => void = () => undefined;

  constructor(deps: ReplicatedTailerDeps<Instance>, request: TailRequest, signal: AbortSignal) {
    this.#deps = deps;
    this.#request = request;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
    this.#clock = deps.clock ?? systemClock;
  }

  async *read(): AsyncGenerator<TailRows, void> {
    const signal = this.#signal;
    if (signal.aborted) return;
    this.#set = this.#deps.replicasOf(this.#request.tenant);
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    try {
      this.#join();
      if (!(await this.#begin())) return;
      yield { dropped: [] };
      void this.#lookAround();
      for (;;) {
        const item = this.#next();
        if (item !== undefined) yield item;
        else if (signal.aborted) return;
        else if (this.#refusal !== undefined) throw this.#refusal.error;
        else if (this.#followed.size === 0) return;
        else await this.#change();
      }
    } finally {
      this.#stop.abort();
      for (const { taken } of this.#offers) taken();
    }
  }

  /** Waits until enough said their first; false when the signal was sooner. */
  async #begin(): Promise<boolean> {
    for (;;) {
      if (this.#signal.aborted) return false;
      if (this.#refusal !== undefined) throw this.#refusal.error;
      const ready = [...this.#followed].filter(([, isReady]) => isReady).map(([id]) => id);
      if (isEnough(this.#set, new Set(ready))) return true;
      if (!isEnough(this.#set, new Set(this.#followed.keys()))) {
        const names = [...this.#lost.keys()].join(", ");
        const [cause] = this.#lost.values();
        throw unavailable(`too few ingesters can be followed, without ${names}`, { cause });
      }
      await this.#change();
    }
  }

  /** What there is to tell; undefined when that is nothing. */
  #next(): TailRows | undefined {
    for (let offer = this.#offers.shift(); offer !== undefined; offer = this.#offers.shift()) {
      const { id, item, taken } = offer;
      this.#noteDropped(id, item);
      const nowMs = this.#clock.nowMs();
      const rows = item.rows && this.#window.newRows(id, item.rows, nowMs);
      taken();
      if (rows !== undefined) return { rows, ...this.#takeDropped() };
    }
    return this.#dropped.length === 0 ? undefined : this.#takeDropped();
  }

  async #lookAround(): Promise<void> {
    const { replicasOf, sleep = defaultSleep } = this.#deps;
    while (!this.#signal.aborted) {
      try {
        await sleep(lookMs, this.#signal);
        this.#set = replicasOf(this.#request.tenant);
      } catch {
        // What was known of the ring still holds, or the tail is over.
      }
      if (this.#signal.aborted) return;
      this.#join();
      this.#window.age(this.#clock.nowMs());
      this.#check();
    }
  }

  /** Follows those that it does not follow. */
  #join(): void {
    const names = new Set(this.#set.instances.map(({ id }) => id));
    for (const id of this.#lost.keys()) if (!names.has(id)) this.#lost.delete(id);
    for (const one of this.#set.instances) if (!this.#followed.has(one.id)) void this.#follow(one);
  }

  async #follow(instance: Instance): Promise<void> {
    const { id } = instance;
    this.#followed.set(id, false);
    try {
      const items = this.#deps.connect(instance).tail(this.#request, { signal: this.#signal });
      for await (const item of items) {
        if (this.#signal.aborted) return;
        if (this.#followed.get(id) === false) this.#enter(id);
        if (item.rows !== undefined || item.dropped.length > 0) await this.#offer(id, item);
      }
      this.#leave(id, unavailable(`the ingester ${id} has ended the tail`));
    } catch (error) {
      if (this.#signal.aborted) return;
      if (!lostCodes.includes(errorCodeOf(error))) this.#refusal = { error };
      else if (!this.#lost.has(id)) this.#deps.onLost?.(id, error);
      this.#leave(id, error);
    }
  }

  #enter(id: string): void {
    this.#followed.set(id, true);
    this.#lost.delete(id);
    this.#check();
    this.#wake();
  }

  #offer(id: string, item: TailRows): Promise<void> {
    return new Promise((taken) => {
      this.#offers.push({ id, item, taken });
      this.#wake();
    });
  }

  #leave(id: string, error: unknown): void {
    this.#followed.delete(id);
    this.#lost.set(id, error);
    this.#check();
    this.#wake();
  }

  /** Holds dropped rows back that another ingester may have. */
  #noteDropped(id: string, { dropped, unnamed = 0 }: TailRows): void {
    if (dropped.length === 0) return;
    this.#slow.set(id, this.#clock.nowMs());
    const named = dropped.slice(0, maxHeldDropped - this.#held.length);
    this.#held.push(...named);
    this.#heldUnnamed += unnamed + dropped.length - named.length;
    this.#check();
  }

  /** Looks whether a quorum is left, and if not tells what was lost. */
  #check(): void {
    const nowMs = this.#clock.nowMs();
    for (const [id, atMs] of this.#slow) if (nowMs - atMs >= slowMs) this.#slow.delete(id);
    const rest = this.#set.instances.map(({ id }) => id).filter((id) => !this.#lost.has(id));
    const isWhole = isEnough(this.#set, new Set(rest));
    if (this.#isWhole && !isWhole) {
      const timestampNs = BigInt(Math.floor(nowMs)) * 1_000_000n;
      this.#dropped.push({ timestampNs, labels: labelsOf(this.#request) });
      this.#wake();
    }
    this.#isWhole = isWhole;
    if (this.#slow.size === 0) {
      this.#held = [];
      this.#heldUnnamed = 0;
    }
    const keen = rest.filter((id) => !this.#slow.has(id));
    if (this.#held.length === 0 || isEnough(this.#set, new Set(keen))) return;
    const named = this.#held.slice(0, maxHeldDropped - this.#dropped.length);
    this.#dropped.push(...named);
    this.#unnamed += this.#heldUnnamed + this.#held.length - named.length;
    this.#held = [];
    this.#heldUnnamed = 0;
    this.#wake();
  }

  #takeDropped(): Pick<TailRows, "dropped" | "unnamed"> {
    const [dropped, unnamed] = [this.#dropped, this.#unnamed];
    this.#dropped = [];
    this.#unnamed = 0;
    return unnamed === 0 ? { dropped } : { dropped, unnamed };
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** The labels that every stream of a tail has. */
function labelsOf({ matchers }: TailRequest): Labels {
  const pairs = new Map<string, string>();
  for (const { name, op, value } of matchers) {
    if (op === "=" && value !== "") pairs.set(name, value);
  }
  const names = [...pairs.keys()].sort();
  return { names, values: names.map((name) => pairs.get(name)!) };
}

/** Keys of one generation; two are held. */
const maxKeys = 50_000;
/** Copies of a row come within this, ms: a generation is no older. */
const maxAgeMs = 30_000;

/** How often a row was shown, and how often each instance had it. */
interface Known {
  shown: number;
  readonly had: Map<string, number>;
}

/**
 * Lets each row through once of those that several instances have. Rows are the same that are of one stream with the same
 * time, line and metadata; what one instance has twice is let through twice. Copies that are far apart are both let through.
 */
class RowWindow {
  #young = new Map<string, Known>();
  #old = new Map<string, Known>();
  #sinceMs = 0;

  /** The rows that no other instance had, in their order; undefined when there are none. */
  newRows(instance: string, rows: LogResult, nowMs: number): LogResult | undefined {
    const keyOf = keysOf(rows);
    const order: number[] = [];
    for (let row = 0; row < rows.rowCount; row++) {
      this.age(nowMs);
      const known = this.#find(keyOf(row));
      const had = (known.had.get(instance) ?? 0) + 1;
      known.had.set(instance, had);
      if (had <= known.shown) continue;
      known.shown = had;
      order.push(row);
    }
    if (order.length === rows.rowCount) return rows;
    return order.length === 0 ? undefined : pickRows(rows, order);
  }

  /** Forgets what is old. */
  age(nowMs: number): void {
    if (this.#young.size < maxKeys && nowMs - this.#sinceMs < maxAgeMs) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#sinceMs = nowMs;
  }

  #find(key: string): Known {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const known = this.#old.get(key) ?? { shown: 0, had: new Map<string, number>() };
    this.#young.set(key, known);
    return known;
  }
}

function keysOf({ labels, labelSet, timestamps, lines }: LogResult): (row: number) => string {
  const texts = labels.map(({ labels: all, categories: { stream, structuredMetadata } }) =>
    hash("sha1", JSON.stringify([all, stream, structuredMetadata].map(pairsOf)), "base64"),
  );
  return (row) => {
    const line = hash("sha1", lineAt(lines, row), "base64");
    return `${timestamps[row]}${texts[labelSet[row]!]}${line}`;
  };
}

function pairsOf({ names, values }: Labels) {
  return [names, values];
}

function pickRows(rows: LogResult, order: readonly number[]): LogResult {
  const { columns, column, value } = rows.lines;
  return {
    ...rows,
    rowCount: order.length,
    timestamps: BigInt64Array.from(order, (row) => rows.timestamps[row]!),
    labelSet: Uint32Array.from(order, (row) => rows.labelSet[row]!),
    lines: {
      columns,
      column: Uint32Array.from(order, (row) => column[row]!),
      value: Uint32Array.from(order, (row) => value[row]!),
    },
  };
}
