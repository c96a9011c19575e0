/** Applies changes to a state one batch after the other: what comes while a batch is applied makes up the next one. */
export class Batches<State, Change> {
  state: State;
  readonly #apply: (state: State, changes: readonly Change[]) => Promise<State>;
  readonly #waiting: Change[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(state: State, apply: (state: State, changes: readonly Change[]) => Promise<State>) {
    this.state = state;
    this.#apply = apply;
  }

  /** Resolves when the change is applied. When a batch fails, its changes and all later ones do. */
  add(change: Change): Promise<void> {
    this.#waiting.push(change);
    this.#last = this.#last.then(async () => {
      const batch = this.#waiting.splice(0);
      if (batch.length > 0) this.state = await this.#apply(this.state, batch);
    });
    return this.#last;
  }
}
