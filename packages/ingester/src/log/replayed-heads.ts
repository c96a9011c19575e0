import type { Batch } from "@skald/model";
import type { BatchRange, WalPosition } from "@skald/storage";
import type { Sealer } from "../flush/sealer.js";
import type { Head } from "../head/head.js";
import type { Heads } from "../tenant/heads.js";
import type { Tenant } from "../tenant/tenant.js";
import { partId } from "./sealed-heads.js";

export interface ReplayedHeadsContext {
  readonly heads: Heads;
  readonly sealer: Sealer;
  readonly signal: AbortSignal;
}

/** What is left of the ceiling after the largest heads were sealed. */
const bulkPart = 0.75;
/** Part of the memory for frozen heads that a replay uses: pushes that are taken meanwhile wait for room only beyond it. */
const frozenPart = 0.5;

/**
 * The heads that a replay fills, under the ids that they had: apart from those that take pushes until the last row is read,
 * so that neither meets what the other has written half.
 */
export class ReplayedHeads {
  readonly #context: ReplayedHeadsContext;
  /** By day. */
  readonly #byTenant = new Map<Tenant, Map<number, Head>>();
  #bytes = 0;

  constructor(context: ReplayedHeadsContext) {
    this.#context = context;
  }

  /** The head of an id; another head of the day has got its last row by then, and is sealed. */
  headFor(tenant: Tenant, day: number, id: string): Head {
    const days = this.#byTenant.get(tenant) ?? new Map<number, Head>();
    this.#byTenant.set(tenant, days);
    const known = days.get(day);
    if (known?.id === id) return known;
    if (known !== undefined) void this.#freeze(tenant, known, "full");
    const head = this.#context.heads.create(tenant, day, id);
    days.set(day, head);
    return head;
  }

  /** Puts rows into a head as a file of the log has them. */
  restore(tenant: Tenant, head: Head, batch: Batch, range: BatchRange, file: number): void {
    const before = head.memoryBytes;
    tenant.restore(batch, range, head);
    head.noteFile(file);
    this.#count(head.memoryBytes - before);
  }

  /** Forgets what was put into a head so far: all of it comes again. */
  clear(head: Head): void {
    this.#count(-head.memoryBytes);
    head.clear();
  }

  /** Waits until the heads take less than `maxBytes`, and those that are frozen leave pushes room; undefined when they do. */
  makeRoom(position: WalPosition, maxBytes: number): Promise<void> | undefined {
    if (this.#bytes > maxBytes) return this.#sealParts(position, maxBytes);
    return this.#context.sealer.hasRoomFor(frozenPart) ? undefined : this.room();
  }

  /**
   * Seals the largest heads before their last row is read, under ids that say how far they go, until the others take less
   * than `maxBytes`. Resolves when they are segments; rejects when the signal is aborted.
   */
  async #sealParts(position: WalPosition, maxBytes: number): Promise<void> {
    const all = [...this.#byTenant].flatMap(([tenant, days]) =>
      Array.from(days.values(), (head) => ({ tenant, head })),
    );
    all.sort((a, b) => b.head.memoryBytes - a.head.memoryBytes);
    const tasks: Promise<void>[] = [];
    for (const { tenant, head } of all) {
      if (this.#bytes <= bulkPart * maxBytes) break;
      await this.room();
      head.id = partId(head.id, position);
      tasks.push(this.#freeze(tenant, head, "memory"));
    }
    await this.#settled(Promise.all(tasks));
  }

  /** Resolves when there is room for more frozen heads; rejects when the signal is aborted. */
  room(): Promise<void> {
    return this.#context.sealer.room(this.#context.signal, frozenPart);
  }

  /**
   * The last row is read: heads go on as those that take the rows of their days. Those of a tenant that was pushed to
   * meanwhile are sealed instead: it has other heads, and duplicates between heads are found by queries, not in the same head.
   */
  async handOver(afterEach: () => Promise<void> | undefined): Promise<void> {
    for (const [tenant, days] of this.#byTenant) {
      for (const head of [...days.values()]) {
        if (tenant.isPushedTo) await this.room();
        tenant.noteNewestOf(head);
        if (tenant.isPushedTo) void this.#freeze(tenant, head, "full");
        else {
          this.#remove(tenant, head);
          tenant.heads.set(head.day, head);
        }
      }
      await afterEach();
    }
  }

  #freeze(tenant: Tenant, head: Head, reason: "full" | "memory"): Promise<void> {
    this.#remove(tenant, head);
    return this.#context.heads.freeze(tenant, head, reason);
  }

  #remove(tenant: Tenant, head: Head): void {
    this.#byTenant.get(tenant)?.delete(head.day);
    this.#count(-head.memoryBytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#context.heads.replayedBytes = this.#bytes;
  }

  async #settled(task: Promise<unknown>): Promise<void> {
    const { signal } = this.#context;
    task.catch(() => undefined);
    const done = new AbortController();
    const aborted = new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { signal: done.signal });
    });
    await Promise.race([task, aborted]).finally(() => done.abort());
  }
}
