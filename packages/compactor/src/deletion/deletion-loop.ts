import { type Logger, repeat, type Sleep } from "@skald/runtime";
import type { DeletePass } from "./delete-pass.js";
import type { DeleteRequests } from "./delete-requests.js";

export interface DeletionLoopDeps {
  readonly deletes: DeleteRequests;
  readonly pass: DeletePass;
  /** Pause between looks at what is carried out. */
  readonly intervalMs: number;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Requests that another compactor took are known here after this time. */
const refreshMs = 30_000;

/** Keeps the delete requests of this process up to date with the store, and looks after those that are due. */
export class DeletionLoop {
  readonly #deps: DeletionLoopDeps;

  constructor(deps: DeletionLoopDeps) {
    this.#deps = deps;
  }

  /** Learns the requests; a store that does not answer is asked again later. */
  async start(signal: AbortSignal): Promise<void> {
    const { deletes, log } = this.#deps;
    try {
      await deletes.refresh({ signal });
    } catch (error) {
      await deletes.recall();
      const message = deletes.isKnown
        ? "the delete requests cannot be read; a copy of them is used until they can"
        : "the delete requests cannot be read, and there is no copy; queries fail until they can";
      log.error(message, { error });
    }
  }

  /** Works until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { deletes, intervalMs, log, pass, sleep } = this.#deps;
    const options = { signal, ...(sleep === undefined ? {} : { sleep }) };
    await Promise.all([
      repeat(() => deletes.refresh({ signal }), {
        ...{ ...options, pauseMs: refreshMs },
        onError: (error) => log.warn("the delete requests cannot be read again", { error }),
      }),
      repeat(() => pass.run({ signal }), {
        ...{ ...options, pauseMs: intervalMs },
        onError: (error) => log.error("delete requests could not be looked after", { error }),
      }),
    ]);
  }
}
