import { fnv1a32 } from "@skald/model";

/** A time during which one piece of work kept the main thread from all others. */
export interface Stretch {
  /** The name of its route, or `other` for work that no request began. */
  readonly route: string;
  readonly tenant: string;
  /** FNV-1a hash of the query string; undefined if there is none. */
  readonly queryHash: number | undefined;
  readonly ms: number;
}

/** Pause between two looks at the clock. */
const periodMs = 20;
/** A look that comes this much late was held up by a stretch. */
const minLateMs = 10;
/** The timer stops after this many looks without work between them: waking an idle process costs more than it tells. */
const maxIdleLooks = 5;
const unknown: Work = { route: "other", tenant: "", url: "", sinceMs: 0 };

interface Work {
  route: string;
  tenant: string;
  url: string;
  sinceMs: number;
}

/**
 * Finds out what blocks the thread it runs on. Work names itself when it begins or goes on, which costs next to nothing; a timer
 * that fires late shows that there was a stretch, and the work with the longest time until the next one named itself had it. The
 * timer runs only while work names itself.
 */
export class StretchRecorder {
  readonly #onStretch: (stretch: Stretch) => void;
  #timer: NodeJS.Timeout | undefined;
  #idleLooks = 0;
  #dueMs = 0;
  #cpuMs = 0;
  #last: Work = { ...unknown };
  #longest: Work = { ...unknown };
  #longestMs = 0;

  constructor(onStretch: (stretch: Stretch) => void) {
    this.#onStretch = onStretch;
  }

  /** Whether a timer runs, as it does while there is work. */
  get isLooking(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    running = this;
  }

  stop(): void {
    this.#rest();
    if (running === this) running = undefined;
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** See `markWork`. */
  mark(route: string, tenant: string, url: string): void {
    this.#idleLooks = 0;
    if (!this.isLooking) {
      this.#timer = setInterval(() => this.#look(), periodMs).unref();
      this.#next();
    }
    const nowMs = performance.now();
    this.#endLast(nowMs);
    const work = this.#last;
    work.route = route;
    work.tenant = tenant;
    work.url = url;
    work.sinceMs = nowMs;
  }

  #endLast(nowMs: number): void {
    const ms = nowMs - this.#last.sinceMs;
    if (ms <= this.#longestMs) return;
    this.#longestMs = ms;
    // The two objects change places, so that no mark makes another.
    [this.#last, this.#longest] = [this.#longest, this.#last];
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#dueMs;
    if (lateMs > minLateMs) {
      this.#endLast(nowMs);
      const { route, tenant, url } = this.#longest;
      const at = url.indexOf("?");
      const queryHash = at < 0 ? undefined : fnv1a32(url.slice(at + 1));
      // On a machine that is busy with other processes the thread is late although it did little.
      const ms = Math.min(this.#longestMs, lateMs + periodMs, threadCpuMs() - this.#cpuMs);
      if (ms > minLateMs) this.#onStretch({ route, tenant, queryHash, ms });
    }
    if (++this.#idleLooks > maxIdleLooks) this.#rest();
    else this.#next();
  }

  #next(): void {
    const nowMs = performance.now();
    Object.assign(this.#last, unknown, { sinceMs: nowMs });
    this.#longestMs = 0;
    this.#dueMs = nowMs + periodMs;
    this.#cpuMs = threadCpuMs();
  }
}

/** CPU time of this thread; before Node 22.19 the time that passed. */
export function threadCpuMs(): number {
  if (process.threadCpuUsage === undefined) return performance.now();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

let running: StretchRecorder | undefined;

/** Says that the main thread begins, or goes on with, work for a tenant on a route. Costs one comparison without a recorder. */
export function markWork(route: string, tenant: string, url = ""): void {
  running?.mark(route, tenant, url);
}
