import type { FreshRows } from "@skald/scan";
import type { Tenant, TenantAppend } from "../tenant/tenant.js";
import { NewRows } from "./new-rows.js";

export interface FeedContext {
  /** Resolves when the rows were looked at; the next come after that. */
  readonly take: (rows: FreshRows) => Promise<void>;
  /** Told of rows that nobody had the time to look at. */
  readonly onMissed: (bytes: number) => void;
  readonly onError: (error: unknown) => void;
}

/** Pause in which rows are gathered. */
const gatherMs = 1000;
/** Who follows rests so many times as long as it works: it has a seventh of a core at most. */
const restPerWork = 6;
/** Lines of a tenant that may wait; beyond they are forgotten. */
const maxWaitingBytes = 64 * 1024 * 1024;
/** Streams that are told of at a time; a batch of more is forgotten. */
const maxStreams = 20_000;

/** Hands the rows that come in to somebody who follows them, one batch at a time. */
export class Feed {
  readonly #context: FeedContext;
  readonly #tenants = new Map<Tenant, NewRows>();
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  /** How long the last took. */
  #workMs = 0;
  #isClosed = false;

  constructor(context: FeedContext) {
    this.#context = context;
  }

  /** Takes note of rows that were published. */
  note(push: TenantAppend): void {
    if (this.#isClosed) return;
    const rows = this.#tenants.get(push.tenant) ?? new NewRows();
    this.#tenants.set(push.tenant, rows);
    rows.note(push);
    if (rows.lineBytes > maxWaitingBytes) {
      this.#context.onMissed(rows.lineBytes);
      this.#tenants.delete(push.tenant);
    }
    this.#schedule();
  }

  /** Hands over what is left, and takes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#work;
    await this.#run();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#work !== undefined) return;
    const pauseMs = Math.max(gatherMs, this.#workMs * restPerWork);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const start = performance.now();
      this.#work = this.#run().finally(() => {
        this.#work = undefined;
        this.#workMs = performance.now() - start;
        if (this.#tenants.size > 0 && !this.#isClosed) this.#schedule();
      });
    }, pauseMs);
  }

  async #run(): Promise<void> {
    const tenants = [...this.#tenants];
    this.#tenants.clear();
    for (const [{ name, streams: table }, rows] of tenants) {
      const bytes = rows.lineBytes;
      const { blocks, streams } = rows.take();
      if (streams.length > maxStreams) {
        this.#context.onMissed(bytes);
        continue;
      }
      const texts = Array.from(streams, (stream) => table.text(stream));
      const rowCount = blocks.reduce((sum, { rowFrom, rowTo }) => sum + rowTo - rowFrom, 0);
      try {
        await this.#context.take({ tenant: name, blocks, streams, texts, rowCount });
      } catch (error) {
        this.#context.onMissed(bytes);
        this.#context.onError(error);
      }
    }
  }
}
