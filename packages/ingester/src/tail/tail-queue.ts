import type { DroppedRow, TailRows } from "@skald/contracts";

export interface TailQueueOptions {
  /** Lines that may wait. */
  readonly maxBytes: number;
  /** Dropped rows that are told of at a time. */
  readonly maxDropped: number;
}

/** Rows of one tail on their way to who asked for them. Rows for which there is no room are dropped, and that is told. */
export class TailQueue {
  readonly #options: TailQueueOptions;
  readonly #rows: TailRows[] = [{ dropped: [] }];
  #dropped: DroppedRow[] = [];
  #bytes = 0;
  #ended: { readonly error?: unknown } | undefined;
  #wake: () => void = () => undefined;

  constructor(options: TailQueueOptions) {
    this.#options = options;
  }

  /** Puts rows behind the others, or drops them; gives how many were dropped. */
  offer({ rows, dropped }: TailRows): number {
    this.drop(dropped);
    if (rows === undefined) return 0;
    const bytes = rows.lines.bytes.length;
    if (this.#bytes > 0 && this.#bytes + bytes > this.#options.maxBytes) {
      const told = Math.min(rows.rowCount, this.#options.maxDropped);
      for (let row = 0; row < told; row++) {
        const labels = rows.labels[rows.labelSet[row]!]!.labels;
        this.drop([{ timestampNs: rows.timestamps[row]!, labels }]);
      }
      return rows.rowCount;
    }
    this.#bytes += bytes;
    this.#rows.push({ rows, dropped: this.#takeDropped() });
    this.#wake();
    return 0;
  }

  /** Tells of dropped rows, as far as there is room for that. */
  drop(dropped: readonly DroppedRow[]): void {
    if (dropped.length === 0) return;
    const room = this.#options.maxDropped - this.#dropped.length;
    this.#dropped.push(...dropped.slice(0, room));
    this.#wake();
  }

  /** Nothing follows what is there. */
  end(error?: unknown): void {
    this.#ended ??= { error };
    this.#wake();
  }

  /** The rows, in order, until the end. Throws what it ended with. */
  async *read(): AsyncGenerator<TailRows, void> {
    for (;;) {
      const next = this.#rows.shift();
      if (next !== undefined) {
        this.#bytes -= next.rows?.lines.bytes.length ?? 0;
        yield next;
      } else if (this.#dropped.length > 0) yield { dropped: this.#takeDropped() };
      else if (this.#ended !== undefined) {
        if (this.#ended.error !== undefined) throw this.#ended.error;
        return;
      } else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #takeDropped(): DroppedRow[] {
    const taken = this.#dropped;
    this.#dropped = [];
    return taken;
  }
}
