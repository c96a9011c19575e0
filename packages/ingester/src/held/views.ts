import type { HeadRef } from "@skald/contracts";
import { notFound, type SegmentRef, type SteadyClock } from "@skald/model";
import type { HeadView } from "@skald/storage";

/** A view that nobody scanned for this long is forgotten: whoever selected it is gone. */
const maxIdleMs = 10 * 60_000;

interface View {
  readonly heads: ReadonlyMap<string, HeadView>;
  /** Ids. */
  readonly segments: ReadonlySet<string>;
  usedMs: number;
}

/** What queries selected: heads as they were, which another process may name, and segments whose files stay until the view is released. */
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

  /** Holds heads and segments under a new name; gives the heads as another process may know them. */
  open(
    heads: readonly HeadView[],
    segments: readonly SegmentRef[],
  ): { readonly view?: string; readonly refs: HeadRef[] } {
    if (heads.length + segments.length === 0) return { refs: [] };
    const view = `v${this.#opened++}`;
    this.#views.set(view, {
      heads: new Map(heads.map((head) => [head.id, head])),
      segments: new Set(segments.map(({ id }) => id)),
      usedMs: this.#clock.elapsedMs(),
    });
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

  /** Whether the file of a segment has to stay. */
  holds(segment: string): boolean {
    return [...this.#views.values()].some(({ segments }) => segments.has(segment));
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
