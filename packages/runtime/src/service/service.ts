/**
 * The life of one part of the process.
 *
 * ```
 *        start()             start hook done         stop(), or run ended
 *  New ──────────► Starting ───────────────► Running ─────────────────► Stopping ──► Terminated
 *   │                 │                         │                          │
 *   │ stop()          │ start hook threw        │ run threw: Stopping,     │ stop hook threw,
 *   ▼                 ▼                         ▼ then                     ▼ or run did
 *  Terminated       Failed                    Failed                     Failed
 * ```
 *
 * The signal given to `start` and `run` is aborted as soon as a stop is asked for.
 */
export class Service {
  readonly name: string;
  /** Resolves when the service is Terminated or Failed; never rejects, see `failure`. */
  readonly ended: Promise<void>;
  readonly #hooks: ServiceHooks;
  readonly #abort = new AbortController();
  readonly #end: () => void;
  #state: ServiceState = "New";
  #failure: unknown;
  #started: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;

  constructor(hooks: ServiceHooks) {
    this.name = hooks.name;
    this.#hooks = hooks;
    const { promise, resolve } = deferred();
    this.ended = promise;
    this.#end = resolve;
  }

  get state(): ServiceState {
    return this.#state;
  }

  /** What made the service fail; undefined while it has not. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Resolves once Running; rejects with the reason when the start hook fails. Later calls return the same promise. */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  /** Asks for the end and resolves at Terminated or Failed; never rejects. Later calls wait for the same end. */
  stop(): Promise<void> {
    this.#abort.abort();
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #start(): Promise<void> {
    if (this.#state !== "New") throw new Error(`service ${this.name} is ${this.#state}`);
    this.#state = "Starting";
    try {
      await this.#hooks.start?.(this.#abort.signal);
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    this.#state = "Running";
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    if (this.#hooks.run === undefined) return;
    try {
      await this.#hooks.run(this.#abort.signal);
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#failure = error;
    }
    if (!this.#abort.signal.aborted) void this.stop();
  }

  async #stop(): Promise<void> {
    if (this.#state === "New") {
      this.#state = "Terminated";
      this.#end();
      return;
    }
    await this.#started?.catch(() => undefined);
    if (this.#state === "Failed") return;
    this.#state = "Stopping";
    try {
      await this.#running;
      await this.#hooks.stop?.();
    } catch (error) {
      this.#failure ??= error;
    }
    if (this.#failure !== undefined) return this.#fail(this.#failure);
    this.#state = "Terminated";
    this.#end();
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#state = "Failed";
    this.#end();
  }
}

export type ServiceState = "New" | "Starting" | "Running" | "Stopping" | "Terminated" | "Failed";

/** What a service does in each phase; every hook is optional. */
export interface ServiceHooks {
  /** As printed by `GET /services`. */
  readonly name: string;
  /** Returns when requests can be served. */
  start?(signal: AbortSignal): Promise<void> | void;
  /** Works in the background until the signal is aborted; ending earlier stops the service, throwing fails it. */
  run?(signal: AbortSignal): Promise<void>;
  /** Releases what `start` took; called after `run` has ended, not when `start` failed. */
  stop?(): Promise<void> | void;
}

/** Resolves with its own `resolve` in hand. */
function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
