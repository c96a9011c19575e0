import { firstIndex, SkaldError } from "@skald/model";
import type { JobQueue, JobShare, WaitingJob } from "@skald/runtime";

export interface FairQueueOptions {
  /** Jobs of one tenant that may wait. The next one is refused as rate_limited. No limit when absent. */
  readonly maxOutstandingPerTenant?: number;
  /** Levels of actors below a tenant with queues of their own. Deeper actors share a queue. 0 ignores actors. */
  readonly maxLevels: number;
  /** True while no job may be taken although some wait. It is asked again whenever a job ends or arrives. */
  readonly isHeld?: () => boolean;
}

/** Every n-th job taken at one place is the oldest one there, whatever it costs. */
const oldestEvery = 4;
const retryAfterSeconds = 1;
const nobody: JobShare = { tenant: "", actors: [], cost: 0 };

/**
 * A tree of queues: a tenant, then its actors from the outside in. At each level all that wait are served in turn, so a
 * tenant or an actor with a thousand jobs is served as often as one with a single job. Among the jobs of one place those
 * that cost least go first, and sometimes the oldest, so that none waits forever.
 */
export class FairQueue implements JobQueue {
  readonly #options: FairQueueOptions;
  readonly #root = new Place();
  readonly #places = new Map<WaitingJob, readonly string[]>();
  #arrivals = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Throws rate_limited when too many jobs of the tenant wait already. */
  push(job: WaitingJob): void {
    const { maxOutstandingPerTenant, maxLevels } = this.#options;
    const { tenant, actors, cost } = job.options.share ?? nobody;
    const waiting = this.#root.at([tenant])?.size ?? 0;
    if (maxOutstandingPerTenant !== undefined && waiting >= maxOutstandingPerTenant) {
      throw tooManyWait(maxOutstandingPerTenant);
    }
    const path = [tenant, ...actors.slice(0, maxLevels)];
    this.#places.set(job, path);
    this.#root.push(path, { job, cost, arrival: this.#arrivals++ });
  }

  take(): WaitingJob | undefined {
    if (this.#options.isHeld?.() === true) return undefined;
    const taken = this.#root.take();
    if (taken !== undefined) this.#places.delete(taken.job);
    return taken?.job;
  }

  delete(job: WaitingJob): boolean {
    const path = this.#places.get(job);
    if (path === undefined) return false;
    this.#places.delete(job);
    this.#root.delete(path, job);
    return true;
  }
}

interface Waiting {
  readonly job: WaitingJob;
  readonly cost: number;
  readonly arrival: number;
}

/** One place of the tree: the jobs that wait there, and the places below it in the order of their turns. */
class Place {
  size = 0;
  /** Cheapest first, equal ones by arrival. */
  #own: Waiting[] = [];
  readonly #below = new Map<string, Place>();
  #taken = 0;
  /** Whether the next turn is for the jobs of this place itself, not for a place below. */
  #ownTurn = true;

  at(path: readonly string[]): Place | undefined {
    const [first, ...rest] = path;
    return first === undefined ? this : this.#below.get(first)?.at(rest);
  }

  push(path: readonly string[], waiting: Waiting): void {
    this.size++;
    const [first, ...rest] = path;
    if (first === undefined) {
      this.#own.splice(this.#rankOf(waiting), 0, waiting);
      return;
    }
    let place = this.#below.get(first);
    if (place === undefined) {
      place = new Place();
      this.#below.set(first, place);
    }
    place.push(rest, waiting);
  }

  take(): Waiting | undefined {
    if (this.size === 0) return undefined;
    this.size--;
    if (this.#own.length > 0 && (this.#ownTurn || this.#below.size === 0)) {
      this.#ownTurn = false;
      return this.#takeOwn();
    }
    const [next] = this.#below;
    if (next === undefined) return this.#takeOwn();
    const [name, place] = next;
    // It moves to the end of the round, or out of the tree.
    this.#below.delete(name);
    const taken = place.take();
    if (place.size > 0) this.#below.set(name, place);
    this.#ownTurn = true;
    return taken;
  }

  delete(path: readonly string[], job: WaitingJob): void {
    this.size--;
    const [first, ...rest] = path;
    if (first === undefined) {
      this.#own = this.#own.filter((waiting) => waiting.job !== job);
      return;
    }
    const place = this.#below.get(first);
    place?.delete(rest, job);
    if (place?.size === 0) this.#below.delete(first);
  }

  #takeOwn(): Waiting | undefined {
    this.#taken++;
    if (this.#taken % oldestEvery !== 0) return this.#own.shift();
    const oldest = this.#own.reduce((a, b) => (b.arrival < a.arrival ? b : a));
    this.#own.splice(this.#own.indexOf(oldest), 1);
    return oldest;
  }

  /** The position of a job among those that wait here, by binary search. */
  #rankOf({ cost }: Waiting): number {
    return firstIndex(0, this.#own.length, (i) => (this.#own[i] as Waiting).cost > cost);
  }
}

function tooManyWait(limit: number): SkaldError {
  return new SkaldError(
    "rate_limited",
    `too many outstanding requests (limit: ${limit}, query_scheduler.max_outstanding_requests_per_tenant)`,
    { retryAfterSeconds },
  );
}
