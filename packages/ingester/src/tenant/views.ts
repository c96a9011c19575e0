import type { HeadRef } from "@skald/contracts";
import { notFound, type SteadyClock } from "@skald/model";
import type { HeadView } from "@skald/storage";

/** A view that nobody scanned for this long is forgotten: whoever selected it is gone. */
const maxIdleMs = 10 * 60_000;

interface View {
  readonly heads: ReadonlyMap<string, HeadView>;
  usedMs: number;
}

/** Heads as queries selected them: what another process may name, and this one can read until the view is released. */
export class Views {
  readonly #clock: SteadyClock;
  readonly #views = new Map<string, View>();
  #opened = 0;

  constructor(clock: SteadyClock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#views.size;
  }

  /** Holds heads under a new name; gives them as another process may know them. */
  open(heads: readonly HeadView[]): { readonly view?: string; readonly refs: HeadRef[] } {
    if (heads.length === 0) return { refs: [] };
    const view = `v${this.#opened++}`;
    const held = new Map(heads.map((head) => [head.id, head]));
    this.#views.set(view, { heads: held, usedMs: this.#clock.elapsedMs() });
    return { view, refs: heads.map((head) => refOf(head, view)) };
  }

  /** The head of a view. Throws not_found when the view was released, or forgotten. */
  find({ view, id }: HeadRef): HeadView {
    const found = this.#views.get(view);
    const head = found?.heads.get(id);
    if (found === undefined || head === undefined) {
      throw notFound(`the view ${view} of head ${id} is gone; select again`);
    }
    found.usedMs = this.#clock.elapsedMs();
    return head;
  }

  release(view: string): void {
    this.#views.delete(view);
  }

  /** Releases views that were left behind. */
  sweep(): void {
    const oldest = this.#clock.elapsedMs() - maxIdleMs;
    for (const [name, { usedMs }] of this.#views) if (usedMs < oldest) this.release(name);
  }
}

function refOf({ id, tenant, minNs, maxNs, blocks }: HeadView, view: string): HeadRef {
  const sizeBytes = blocks.reduce((sum, { memory }) => sum + memory.byteLength, 0);
  return { kind: "head", id, tenant, minNs, maxNs, view, sizeBytes };
}
