import type { SteadyClock } from "@skald/model";

/**
 * When signs of life of others were seen, by this process's clock and only while it could see: an age grows between two
 * readings of the store, by a bounded step, and stands still while the store cannot be read or this process is stopped. So
 * neither another's clock nor our own blindness makes anybody look dead.
 */
export class Sightings {
  readonly #clock: SteadyClock;
  readonly #maxStepMs: number;
  readonly #seen = new Map<string, { text: string; atMs: number }>();
  #watchedMs = 0;
  #lastMs: number | undefined;

  /** `maxStepMs`: how much time may pass between two readings and still count as watched. */
  constructor(options: { readonly clock: SteadyClock; readonly maxStepMs: number }) {
    this.#clock = options.clock;
    this.#maxStepMs = options.maxStepMs;
  }

  /** Notes what was read now: a text that is another than before is a sign of life. */
  note(fields: ReadonlyMap<string, string>): void {
    const nowMs = this.#clock.elapsedMs();
    const passed = nowMs - (this.#lastMs ?? nowMs);
    this.#watchedMs += Math.min(Math.max(0, passed), this.#maxStepMs);
    this.#lastMs = nowMs;
    for (const [id, text] of fields)
      if (this.#seen.get(id)?.text !== text) this.#seen.set(id, { text, atMs: this.#watchedMs });
  }

  /** Time watched since the last sign of life, in ms; 0 of one that was never seen. */
  ageMs(id: string): number {
    const seen = this.#seen.get(id);
    return seen === undefined ? 0 : this.#watchedMs - seen.atMs;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }
}
