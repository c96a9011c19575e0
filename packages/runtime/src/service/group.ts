import type { Service, ServiceState } from "./service.js";

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
