import type { DroppedRow, TailRequest, TailRows } from "@skald/contracts";
import { compileMatchers, type Labels, SkaldError } from "@skald/model";
import type { TailBounds, TailFound, TailPart, TailStretch, TailTask } from "@skald/scan";
import type { HeadBlock } from "@skald/storage";
import type { NumberedStreams } from "./tenant/numbered-streams.js";
import type { Tenant, TenantAppend } from "./tenant/tenant.js";

/** Runs tails over new rows on a thread. */
export type RunTails = (
  task: TailTask,
  options: { readonly signal: AbortSignal; readonly tenant: string; readonly bytes: number },
) => Promise<TailWork>;

/** What a thread found for the tails of a task. */
export interface TailWork {
  readonly found: readonly TailFound[];
  /** How long the thread worked, without waits for it. */
  readonly workMs: number;
}

export interface TailsContext {
  readonly run: RunTails;
  /** Most dropped rows that one message of a tail names. */
  readonly maxDropped: number;
  readonly onDropped: (rows: number) => void;
  readonly onError: (error: unknown) => void;
}

/** New rows are gathered for this long, so that the cost of a push does not depend on the number of tails. */
const gatherMs = 100;
/** Further time for each tail of the tenant, so that the number of messages per second stays about the same. */
const gatherMsPerTail = 1;
/** Bytes of lines of one tenant that may wait for threads; beyond, they are dropped. */
const maxNewBytes = 64 * 1024 * 1024;
/** Bytes of lines that may wait for the client of one tail. */
const maxQueuedBytes = 4 * 1024 * 1024;
/** Limits of one task for one tail. */
const taskBounds = { maxRows: 20_000, maxBytes: 4 * 1024 * 1024 };
/** Most tails of one task, because other tasks wait for it. */
const maxTailsOfTask = 64;

/** The open tails. While a tenant has none, a push costs one lookup. */
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

  /** Returns the rows that are published from now on, until the signal is aborted. */
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

  /** Must be called with each published push. */
  note(push: TenantAppend): void {
    this.#tenants.get(push.tenant.name)?.note(push);
  }

  /** Ends all tails; later ones end at once. */
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
  /** What threads worked last, which is followed by as long a pause: tails use at most half of a core. */
  #restMs = 0;

  constructor(name: string, context: TailsContext) {
    this.#name = name;
    this.#context = context;
  }

  get size(): number {
    return this.#tails.size;
  }

  /** Adds a tail; returns a function that removes it. */
  add(tail: OpenTail): () => void {
    // The new tail must not get earlier rows.
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

  /** Lets threads read the new rows, one task after the other. */
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
    const work = async () => {
      let workMs = 0;
      for (const { tails, parts, texts } of slices) {
        workMs += await this.#run(tails, { blocks, streams, texts, tails: parts, bounds }, bytes);
      }
      this.#restMs = workMs;
    };
    work()
      .catch(onError)
      .finally(() => {
        this.#running--;
        if (!this.#newRows.isEmpty) this.#schedule();
      });
  }

  /** Returns how long the thread worked, in ms. */
  async #run(tails: readonly OpenTail[], task: TailTask, bytes: number): Promise<number> {
    const { run, onDropped, onError } = this.#context;
    const { signal } = this.#ended;
    try {
      const { found, workMs } = await run(task, { signal, tenant: this.#name, bytes });
      for (const [i, tail] of tails.entries()) {
        const { error, ...rows } = found[i] as TailFound;
        if (error !== undefined) tail.queue.end(new SkaldError(error.code, error.message));
        else onDropped(tail.queue.offer(rows));
      }
      return workMs;
    } catch (error) {
      if (signal.aborted) return 0;
      onError(error);
      for (const tail of tails) tail.queue.end(error);
      return 0;
    }
  }

  /** The tails that match any of the streams, in slices. */
  #slicesOf(table: NumberedStreams, streams: Uint32Array) {
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

  /** Drops the new rows, because threads are too far behind. */
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

/** One tail, which matches each stream once. */
class OpenTail {
  readonly request: TailRequest;
  readonly queue: TailQueue;
  readonly #matches: (labels: Labels) => boolean;
  #table: NumberedStreams | undefined;
  #removals = 0;
  /** By number of the stream; 0 when it is not decided. */
  #decided = new Uint8Array(0);

  constructor(request: TailRequest, queue: TailQueue) {
    this.request = request;
    this.queue = queue;
    this.#matches = compileMatchers(request.matchers);
  }

  /** Returns 1 for each of the streams that match. */
  wantedOf(table: NumberedStreams, streams: Uint32Array): Uint8Array {
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

  /** Forgets decisions after a removal, because numbers may mean other streams. */
  #bind(table: NumberedStreams): void {
    if (this.#table !== table || this.#removals !== table.removals) {
      this.#table = table;
      this.#removals = table.removals;
      this.#decided = new Uint8Array(0);
    }
    if (this.#decided.length < table.limit) {
      const decided = new Uint8Array(Math.max(64, 2 * table.limit));
      decided.set(this.#decided);
      this.#decided = decided;
    }
  }
}

/** Published rows of a tenant that no tail has seen yet, as stretches of head blocks. */
class NewRows {
  readonly #stretches = new Map<HeadBlock, { from: number; to: number }>();
  #lineBytes = 0;

  get lineBytes(): number {
    return this.#lineBytes;
  }

  get isEmpty(): boolean {
    return this.#stretches.size === 0;
  }

  /** Adds the rows of a push without copying them. */
  note({ heads }: TenantAppend): void {
    for (const { head, before, after } of heads.values()) {
      // The memory must not be reused when the head is sealed.
      head.viewed = true;
      const first = Math.max(0, before.blocks - 1);
      for (let i = first; i < after.blocks; i++) {
        const block = head.blocks[i] as HeadBlock;
        const from = i === before.blocks - 1 ? before.rows : 0;
        this.#add(block, from, i === after.blocks - 1 ? after.rows : block.rowCount);
      }
    }
  }

  /** Returns all rows and starts again with none. */
  take(): { readonly blocks: TailStretch[]; readonly streams: Uint32Array } {
    const blocks: TailStretch[] = [];
    const streams = new Set<number>();
    for (const [block, { from, to }] of this.#stretches) {
      const ref = block.view();
      blocks.push({ ref, rowFrom: from, rowTo: to });
      const { runStart, runStream } = block.columns;
      // The newest runs come last, and the stretch has few of all runs.
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

interface TailQueueOptions {
  /** Bytes of lines that may wait. */
  readonly maxBytes: number;
  /** Most dropped rows that one message names. */
  readonly maxDropped: number;
}

/** Rows that wait for the client of one tail. Rows without room are dropped, and the client is told. */
export class TailQueue {
  readonly #options: TailQueueOptions;
  readonly #rows: TailRows[] = [{ dropped: [] }];
  #dropped: DroppedRow[] = [];
  #unnamed = 0;
  #bytes = 0;
  #ended: { readonly error?: unknown } | undefined;
  #wake: () => void = () => undefined;

  constructor(options: TailQueueOptions) {
    this.#options = options;
  }

  /** Appends rows, or drops them; returns how many were dropped, also before. */
  offer({ rows, dropped, unnamed = 0 }: TailRows): number {
    this.drop(dropped, unnamed);
    const left = dropped.length + unnamed;
    if (rows === undefined) return left;
    const bytes = lineBytesOf(rows);
    if (this.#bytes > 0 && this.#bytes + bytes > this.#options.maxBytes) {
      const named = Math.min(rows.rowCount, this.#options.maxDropped);
      const told = Array.from({ length: named }, (_, row) => {
        const labels = rows.labels[rows.labelSet[row]!]!.labels;
        return { timestampNs: rows.timestamps[row]!, labels };
      });
      this.drop(told, rows.rowCount - named);
      return left + rows.rowCount;
    }
    this.#bytes += bytes;
    this.#rows.push({ rows, ...this.#takeDropped() });
    this.#wake();
    return left;
  }

  /** Reports dropped rows to the client: names them within the limit, and counts the others. */
  drop(dropped: readonly DroppedRow[], unnamed = 0): void {
    if (dropped.length === 0) return;
    const named = dropped.slice(0, this.#options.maxDropped - this.#dropped.length);
    this.#dropped.push(...named);
    this.#unnamed += unnamed + dropped.length - named.length;
    this.#wake();
  }

  /** Ends the queue behind the rows that wait. */
  end(error?: unknown): void {
    this.#ended ??= { error };
    this.#wake();
  }

  /** Returns the rows in order until the end. Throws the error that it ended with. */
  async *read(): AsyncGenerator<TailRows, void> {
    for (;;) {
      const next = this.#rows.shift();
      if (next !== undefined) {
        if (next.rows !== undefined) this.#bytes -= lineBytesOf(next.rows);
        yield next;
      } else if (this.#dropped.length > 0) yield this.#takeDropped();
      else if (this.#ended !== undefined) {
        if (this.#ended.error !== undefined) throw this.#ended.error;
        return;
      } else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #takeDropped(): Pick<TailRows, "dropped" | "unnamed"> {
    const [dropped, unnamed] = [this.#dropped, this.#unnamed];
    this.#dropped = [];
    this.#unnamed = 0;
    return unnamed === 0 ? { dropped } : { dropped, unnamed };
  }
}

function lineBytesOf({ lines }: NonNullable<TailRows["rows"]>): number {
  return lines.columns.reduce((sum, { bytes }) => sum + bytes.length, 0);
}
