import type { DroppedRow, TailRequest, TailRows } from "@skald/contracts";
import { compileMatchers, type Labels, SkaldError } from "@skald/model";
import type { TailBounds, TailFound, TailPart, TailStretch, TailTask } from "@skald/scan";
import type { HeadBlock } from "@skald/storage";
import type { Tenant, TenantAppend } from "./tenant/tenant.js";
import type { TenantStreams } from "./tenant/tenant-streams.js";

/** Runs tails over new rows on a thread. */
export type RunTails = (
  task: TailTask,
  options: { readonly signal: AbortSignal; readonly tenant: string; readonly bytes: number },
) => Promise<readonly TailFound[]>;

export interface TailsContext {
  readonly run: RunTails;
  /** Dropped rows that a tail is told of at a time. */
  readonly maxDropped: number;
  readonly onDropped: (rows: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Pause in which new rows are gathered: what a push costs does not depend on the number of tails. */
const gatherMs = 100;
/** And so much more for each tail of the tenant: the messages of a second stay about as many. */
const gatherMsPerTail = 1;
/** Lines that may wait for threads, for one tenant; beyond they are dropped. */
const maxNewBytes = 64 * 1024 * 1024;
/** Lines that may wait for the client of one tail. */
const maxQueuedBytes = 4 * 1024 * 1024;
/** Of one task for one tail. */
const taskBounds = { maxRows: 20_000, maxBytes: 4 * 1024 * 1024 };
/** Tails that one task is for: several are a slice that others wait for. */
const maxTailsOfTask = 64;

/** Open tails. While a tenant has none, a push costs one look into a map. */
export class Tails {
  readonly #context: TailsContext;
  readonly #tenants = new Map<string, TenantTails>();
  #isClosed = false;

  constructor(context: TailsContext) {
    this.#context = context;
  }

  /** Tails that are open. */
  get count(): number {
    let count = 0;
    for (const { size } of this.#tenants.values()) count += size;
    return count;
  }

  /** Rows that are published from now on, until the signal. */
  open(request: TailRequest, signal: AbortSignal): AsyncIterable<TailRows> {
    const { maxDropped } = this.#context;
    const queue = new TailQueue({ maxBytes: maxQueuedBytes, maxDropped });
    if (this.#isClosed || signal.aborted) {
      queue.end();
      return queue.read();
    }
    const known = this.#tenants.get(request.tenant);
    const tenant = known ?? new TenantTails(request.tenant, this.#context);
    this.#tenants.set(request.tenant, tenant);
    const close = tenant.add(new OpenTail(request, queue));
    const onAbort = () => {
      close();
      if (tenant.size === 0) this.#tenants.delete(request.tenant);
      queue.end();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    return queue.read();
  }

  /** Takes note of rows that were published. */
  note(push: TenantAppend): void {
    this.#tenants.get(push.tenant.name)?.note(push);
  }

  /** Ends all tails, and takes no more. */
  close(): void {
    this.#isClosed = true;
    for (const tenant of this.#tenants.values()) tenant.end();
    this.#tenants.clear();
  }
}

/** The tails of one tenant and the rows that they have not seen. */
class TenantTails {
  readonly #name: string;
  readonly #context: TailsContext;
  readonly #tails = new Set<OpenTail>();
  readonly #ended = new AbortController();
  #newRows = new NewRows();
  #tenant: Tenant | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running = 0;
  /** As long as the last work took: tails have half of a core at most, whatever they ask for. */
  #restMs = 0;

  constructor(name: string, context: TailsContext) {
    this.#name = name;
    this.#context = context;
  }

  get size(): number {
    return this.#tails.size;
  }

  /** Gives what takes it out again. */
  add(tail: OpenTail): () => void {
    // Rows from before are not for it.
    if (!this.#newRows.isEmpty) this.#begin();
    this.#tails.add(tail);
    return () => {
      this.#tails.delete(tail);
      if (this.size === 0) this.end();
    };
  }

  note(push: TenantAppend): void {
    this.#tenant = push.tenant;
    this.#newRows.note(push);
    if (this.#newRows.lineBytes > maxNewBytes) this.#dropAll(push.tenant);
    else this.#schedule();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#ended.abort();
    for (const { queue } of this.#tails) queue.end();
    this.#tails.clear();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#running > 0 || this.#ended.signal.aborted) return;
    const pauseMs = gatherMs + this.size * gatherMsPerTail;
    this.#timer = setTimeout(() => this.#begin(), Math.max(pauseMs, this.#restMs));
  }

  /** Has threads look at what is new, one time after the other. */
  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const tenant = this.#tenant;
    if (tenant === undefined || this.#newRows.isEmpty) return;
    const bytes = this.#newRows.lineBytes;
    const { blocks, streams } = this.#newRows.take();
    const slices = this.#slicesOf(tenant.streams, streams);
    if (slices.length === 0) return;
    this.#running++;
    const { maxDropped, onError } = this.#context;
    const bounds: TailBounds = { ...taskBounds, maxDropped };
    const start = performance.now();
    const work = async () => {
      for (const { tails, parts, texts } of slices) {
        await this.#run(tails, { blocks, streams, texts, tails: parts, bounds }, bytes);
      }
      this.#restMs = performance.now() - start;
    };
    work()
      .catch(onError)
      .finally(() => {
        this.#running--;
        if (!this.#newRows.isEmpty) this.#schedule();
      });
  }

  async #run(tails: readonly OpenTail[], task: TailTask, bytes: number): Promise<void> {
    const { run, onDropped, onError } = this.#context;
    const { signal } = this.#ended;
    try {
      const found = await run(task, { signal, tenant: this.#name, bytes });
      for (const [i, tail] of tails.entries()) {
        const { error, ...rows } = found[i] as TailFound;
        if (error !== undefined) tail.queue.end(new SkaldError(error.code, error.message));
        else onDropped(tail.queue.offer(rows));
      }
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
      for (const tail of tails) tail.queue.end(error);
    }
  }

  /** The tails that want any of the streams, in slices. */
  #slicesOf(table: TenantStreams, streams: Uint32Array) {
    const tails: OpenTail[] = [];
    const parts: TailPart[] = [];
    for (const tail of this.#tails) {
      const wanted = tail.wantedOf(table, streams);
      if (!wanted.includes(1)) continue;
      tails.push(tail);
      parts.push({ stages: tail.request.stages, wanted });
    }
    const slices: { tails: OpenTail[]; parts: TailPart[]; texts: string[] }[] = [];
    for (let from = 0; from < tails.length; from += maxTailsOfTask) {
      const to = from + maxTailsOfTask;
      const some = parts.slice(from, to);
      const texts = Array.from(streams, (stream, i) =>
        some.some(({ wanted }) => wanted[i] === 1) ? table.text(stream) : "",
      );
      slices.push({ tails: tails.slice(from, to), parts: some, texts });
    }
    return slices;
  }

  /** Threads are too far behind. */
  #dropAll({ streams: table }: Tenant): void {
    const { blocks, streams } = this.#newRows.take();
    const rows = blocks.reduce((sum, { rowFrom, rowTo }) => sum + rowTo - rowFrom, 0);
    this.#context.onDropped(rows);
    const timestampNs = blocks[0]?.ref.baseNs ?? 0n;
    for (const tail of this.#tails) {
      const wanted = tail.wantedOf(table, streams);
      const dropped: DroppedRow[] = [];
      for (const [i, stream] of streams.entries()) {
        if (wanted[i] === 1 && dropped.length < this.#context.maxDropped)
          dropped.push({ timestampNs, labels: table.labels(stream) });
      }
      tail.queue.drop(dropped);
    }
  }
}

const unwanted = 1;
const wantedStream = 2;

/** One tail, with what it has decided about streams: each is matched once. */
class OpenTail {
  readonly request: TailRequest;
  readonly queue: TailQueue;
  readonly #matches: (labels: Labels) => boolean;
  #table: TenantStreams | undefined;
  #removals = 0;
  /** By number of the stream; 0: not decided. */
  #decided = new Uint8Array(0);

  constructor(request: TailRequest, queue: TailQueue) {
    this.request = request;
    this.queue = queue;
    this.#matches = compileMatchers(request.matchers);
  }

  /** 1 for each of the streams that it wants. */
  wantedOf(table: TenantStreams, streams: Uint32Array): Uint8Array {
    this.#bind(table);
    const decided = this.#decided;
    const wanted = new Uint8Array(streams.length);
    for (let i = 0; i < streams.length; i++) {
      const stream = streams[i]!;
      if (decided[stream] === 0) {
        decided[stream] = this.#matches(table.labels(stream)) ? wantedStream : unwanted;
      }
      if (decided[stream] === wantedStream) wanted[i] = 1;
    }
    return wanted;
  }

  /** Numbers stand for other streams once some were removed. */
  #bind(table: TenantStreams): void {
    if (this.#table !== table || this.#removals !== table.removals) {
      this.#table = table;
      this.#removals = table.removals;
      this.#decided = new Uint8Array(table.limit);
    } else if (this.#decided.length < table.limit) {
      const decided = new Uint8Array(Math.max(64, 2 * table.limit));
      decided.set(this.#decided);
      this.#decided = decided;
    }
  }
}

/** Rows of a tenant that were published and that no tail has looked at yet, as stretches of the blocks that hold them. */
export class NewRows {
  readonly #stretches = new Map<HeadBlock, { from: number; to: number }>();
  #lineBytes = 0;

  get lineBytes(): number {
    return this.#lineBytes;
  }

  get isEmpty(): boolean {
    return this.#stretches.size === 0;
  }

  /** Takes note of what a push has put into heads; nothing is copied. */
  note({ heads }: TenantAppend): void {
    for (const { head, before, after } of heads.values()) {
      // The memory must stay as it is when the head is sealed.
      head.viewed = true;
      const first = Math.max(0, before.blocks - 1);
      for (let i = first; i < after.blocks; i++) {
        const block = head.blocks[i] as HeadBlock;
        const from = i === before.blocks - 1 ? before.rows : 0;
        this.#add(block, from, i === after.blocks - 1 ? after.rows : block.rowCount);
      }
    }
  }

  /** Hands over all of them. */
  take(): { readonly blocks: TailStretch[]; readonly streams: Uint32Array } {
    const blocks: TailStretch[] = [];
    const streams = new Set<number>();
    for (const [block, { from, to }] of this.#stretches) {
      const ref = block.view();
      blocks.push({ ref, rowFrom: from, rowTo: to });
      const { runStart, runStream } = block.columns;
      // Newest runs last: those of the stretch are few beside the others.
      for (let run = ref.runCount - 1; run >= 0; run--) {
        if (runStart[run]! < to) streams.add(runStream[run]!);
        if (runStart[run]! <= from) break;
      }
    }
    this.#stretches.clear();
    this.#lineBytes = 0;
    return { blocks, streams: Uint32Array.from(streams).sort() };
  }

  #add(block: HeadBlock, from: number, to: number): void {
    if (from >= to) return;
    const { lineOffset } = block.columns;
    this.#lineBytes += lineOffset[to]! - lineOffset[from]!;
    const known = this.#stretches.get(block);
    if (known === undefined) this.#stretches.set(block, { from, to });
    else known.to = to;
  }
}

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
