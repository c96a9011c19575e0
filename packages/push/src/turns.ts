import { SkaldError } from "@skald/model";

/** Whose work it is. */
export interface TurnOptions {
  /** Queues take turns; the works of one queue run one after the other. */
  readonly queue: string;
  /** Whether nobody waits for the work any more: it ends as cancelled. */
  readonly isGone?: (() => boolean) | undefined;
  /** Whether it goes on with what was begun, and so comes before works that begin: few of many pushes hold memory at a time. */
  readonly goesOn?: boolean;
}

/** Longest stretch that all works together take between two turns of the event loop. */
const stretchMs = 2;

/**
 * Runs interruptible work. A small push returns its result at once. The rest of others runs in turn with that of all others on
 * this thread, which gives up the thread every 4 ms: neither a push of a million streams nor a hundred of them block others.
 */
export function runInTurns<T>(work: Generator<void, T>, options: TurnOptions): T | Promise<T> {
  const first = work.next();
  if (first.done === true) return first.value;
  return new Promise<T>((resolve, reject) => {
    turns.add({ work, options, resolve: resolve as (value: unknown) => void, reject });
  });
}

interface Waiting {
  readonly work: Generator<void, unknown>;
  readonly options: TurnOptions;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Works that wait for their next step. */
class Turns {
  /** By queue; the first queue has the next turn. */
  readonly #queues = new Map<string, Waiting[]>();
  #isPlanned = false;

  add(waiting: Waiting): void {
    const { queue, goesOn } = waiting.options;
    const others = this.#queues.get(queue);
    if (others === undefined) this.#queues.set(queue, [waiting]);
    else {
      const first = others.findIndex(({ options }) => options.goesOn !== true);
      others.splice(goesOn === true && first >= 0 ? first : others.length, 0, waiting);
    }
    this.#plan();
  }

  #plan(): void {
    if (this.#isPlanned || this.#queues.size === 0) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      this.#run();
      this.#plan();
    });
  }

  #run(): void {
    const end = performance.now() + stretchMs;
    for (const [queue, works] of this.#queues) {
      // The queue goes behind the others, which this loop comes to after them.
      this.#queues.delete(queue);
      if (isDone(works[0] as Waiting)) works.shift();
      if (works.length > 0) this.#queues.set(queue, works);
      if (performance.now() >= end) return;
    }
  }
}

/** Runs a step of a work, and settles its promise when it was the last. */
function isDone({ work, options, resolve, reject }: Waiting): boolean {
  try {
    if (options.isGone?.() === true) {
      work.return(undefined);
      throw new SkaldError("cancelled", "the request was cancelled by the client");
    }
    const step = work.next();
    if (step.done === true) resolve(step.value);
    return step.done === true;
  } catch (error) {
    reject(error);
    return true;
  }
}

const turns = new Turns();
