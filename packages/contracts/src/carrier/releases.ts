import { within } from "@skald/runtime/tracing";

/** Views wait for so long for others that are given back; an ingester may keep what they hold meanwhile. */
const maxWaitMs = 250;
/** So many go at once. */
const maxViews = 100;

type SendViews = (views: readonly string[]) => Promise<{ readonly takesMany: boolean }>;

/** Of no query, and no reason for a process not to end. */
function later(run: () => void, ms: number): void {
  within(undefined, () => void setTimeout(run, ms).unref());
}

/**
 * Gives views back, several in a call: nobody waits for that, and a call of their own costs as much as what queries ask for.
 * One at a time until the other side has said that it takes several.
 */
export class Releases {
  readonly #send: SendViews;
  readonly #later: typeof later;
  #views: string[] = [];
  #isPlanned = false;
  #takesMany = false;

  /** `send` gives back the views of a call, `later` runs something after so many ms. */
  constructor(send: SendViews, runLater: typeof later = later) {
    this.#send = send;
    this.#later = runLater;
  }

  /** Resolves when the view is given back, or is to be. */
  async add(view: string): Promise<void> {
    if (!this.#takesMany) {
      this.#takesMany = (await this.#send([view])).takesMany;
      return;
    }
    this.#views.push(view);
    if (this.#views.length >= maxViews) this.#flush();
    else if (!this.#isPlanned) {
      this.#isPlanned = true;
      this.#later(() => {
        this.#isPlanned = false;
        this.#flush();
      }, maxWaitMs);
    }
  }

  #flush(): void {
    const views = this.#views;
    if (views.length === 0) return;
    this.#views = [];
    void this.#send(views).then(
      ({ takesMany }) => {
        this.#takesMany = takesMany;
      },
      () => {
        // They are forgotten in time; who comes back may be older.
        this.#takesMany = false;
      },
    );
  }
}
