interface Flight {
  readonly to: number;
  readonly done: Promise<void>;
  readonly abort: AbortController;
  waiting: number;
}

/**
 * Fetches that are under way, by where they begin: who asks for one that is long enough waits for it instead. One that nobody
 * waits for any more is given up.
 */
export class Flights {
  readonly #flights = new Map<string, Flight>();

  /** Waits until everything up to `to` was fetched; rejects with the signal's reason as soon as that is aborted. */
  async join(
    place: string,
    to: number,
    signal: AbortSignal,
    fetch: (stop: AbortSignal) => Promise<void>,
  ): Promise<void> {
    signal.throwIfAborted();
    const known = this.#flights.get(place);
    const flight = known !== undefined && known.to >= to ? known : this.#start(place, to, fetch);
    flight.waiting++;
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      await Promise.race([flight.done, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      flight.waiting--;
      if (flight.waiting === 0) this.#giveUp(place, flight);
    }
  }

  close(): void {
    for (const { abort } of this.#flights.values()) abort.abort();
  }

  #giveUp(place: string, flight: Flight): void {
    if (this.#flights.get(place) === flight) this.#flights.delete(place);
    flight.abort.abort();
  }

  #start(place: string, to: number, fetch: (stop: AbortSignal) => Promise<void>): Flight {
    const abort = new AbortController();
    const done = fetch(abort.signal).finally(() => {
      if (this.#flights.get(place) === flight) this.#flights.delete(place);
    });
    // Whoever waits hears of it; when nobody does any more, nobody needs to.
    done.catch(() => {});
    const flight: Flight = { to, done, abort, waiting: 0 };
    this.#flights.set(place, flight);
    return flight;
  }
}
