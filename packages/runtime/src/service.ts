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
  #end = (): void => undefined;
  #state: ServiceState = "New";
  #failure: unknown;
  #started: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;

  constructor(hooks: ServiceHooks) {
    this.name = hooks.name;
    this.#hooks = hooks;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
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

/** One service and the names of the services that must be Running before it starts. */
export interface ServiceNode {
  readonly service: Service;
  readonly needs: readonly string[];
}

/**
 * Services that live and end together: each starts when the ones it needs are Running, and is stopped
 * before them. Services that do not need each other start and stop at the same time.
 */
export class ServiceGroup {
  /** In an order in which every service comes after those it needs. */
  readonly services: readonly Service[];
  readonly #nodes: readonly ServiceNode[];

  /** Throws when a needed name is missing, given twice, or needs itself by a circle. */
  constructor(nodes: readonly ServiceNode[]) {
    this.#nodes = sortByNeeds(nodes);
    this.services = this.#nodes.map((node) => node.service);
  }

  /** Resolves when all are Running. When one fails, stops those already started and rejects with its reason. */
  async start(): Promise<void> {
    const started = new Map<string, Promise<void>>();
    for (const { service, needs } of this.#nodes) {
      const ready = Promise.all(needs.map((name) => started.get(name)));
      started.set(
        service.name,
        ready.then(() => service.start()),
      );
    }
    const results = await Promise.allSettled(started.values());
    const failed = results.find((result) => result.status === "rejected");
    if (failed === undefined) return;
    await this.stop();
    throw failed.reason;
  }

  /** Stops all, each after those that need it. Resolves at the end; look at `failure` of each for trouble. */
  async stop(): Promise<void> {
    const stopped = new Map<string, Promise<void>>();
    for (const { service } of this.#nodes.toReversed()) {
      const users = this.#nodes.filter((node) => node.needs.includes(service.name));
      const free = Promise.all(users.map((node) => stopped.get(node.service.name)));
      stopped.set(
        service.name,
        free.then(() => service.stop()),
      );
    }
    await Promise.all(stopped.values());
  }

  /** Resolves with the first service that fails, whenever that is. */
  async firstFailure(): Promise<Service> {
    return new Promise((resolve) => {
      for (const service of this.services) {
        void service.ended.then(() => {
          if (service.state === "Failed") resolve(service);
        });
      }
    });
  }
}

/** The text of `GET /services`: one line `name => State` per service. */
export function formatServices(services: readonly NamedState[]): string {
  return services.map(({ name, state }) => `${name} => ${state}\n`).join("");
}

/** The text of `GET /ready` when a service is not Running: states counted; undefined when all are. */
export function describeNotRunning(services: readonly NamedState[]): string | undefined {
  if (services.every((service) => service.state === "Running")) return undefined;
  const counts = new Map<ServiceState, number>();
  for (const { state } of services) counts.set(state, (counts.get(state) ?? 0) + 1);
  const lines = [...counts].map(([state, count]) => `${state}: ${count}\n`);
  return `Some services are not Running:\n${lines.join("")}`;
}

/** What the texts need of a service. */
export interface NamedState {
  readonly name: string;
  readonly state: ServiceState;
}

function sortByNeeds(nodes: readonly ServiceNode[]): ServiceNode[] {
  const byName = new Map(nodes.map((node) => [node.service.name, node]));
  if (byName.size !== nodes.length) throw new Error("two services have the same name");
  const sorted: ServiceNode[] = [];
  const state = new Map<ServiceNode, "open" | "done">();
  const visit = (node: ServiceNode, path: string): void => {
    if (state.get(node) === "done") return;
    if (state.get(node) === "open") throw new Error(`services need each other: ${path}`);
    state.set(node, "open");
    for (const name of node.needs) {
      const needed = byName.get(name);
      if (needed === undefined)
        throw new Error(`service ${node.service.name} needs ${name}, which is not there`);
      visit(needed, `${path} -> ${name}`);
    }
    state.set(node, "done");
    sorted.push(node);
  };
  for (const node of nodes) visit(node, node.service.name);
  return sorted;
}
