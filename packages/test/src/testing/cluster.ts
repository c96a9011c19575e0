import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../../../../scripts/cluster.mjs", import.meta.url));

/** The differences from the usual cluster: see `planServices` in scripts/cluster/services.mjs. */
export interface ClusterPlan {
  readonly counts?: Readonly<Record<string, number>>;
  readonly spares?: readonly string[];
  readonly zones?: number;
  readonly links?: readonly string[];
  readonly clocks?: Readonly<Record<string, number>>;
  readonly syslog?: string;
  readonly builds?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

/** The state of a connection between services; see scripts/cluster/links.mjs. */
export type LinkMode = "pass" | "drop" | "refuse" | "strand";

const metricsTimeoutMs = 5000;

interface Addresses {
  readonly gateway: string;
  readonly services: readonly string[];
  readonly syslogPorts: readonly number[];
}

/** The cluster of `npm run cluster`, whose processes a test ends and starts. */
export class Cluster {
  readonly gateway: string;
  /** The addresses of the services. */
  readonly services: readonly string[];
  /** The ports of the distributors for syslog, where the plan has it. */
  readonly syslogPorts: readonly number[];
  readonly #child: ChildProcess;
  #calls = 0;

  private constructor(child: ChildProcess, { gateway, services, syslogPorts }: Addresses) {
    this.#child = child;
    this.gateway = gateway;
    this.services = services;
    this.syslogPorts = syslogPorts;
  }

  /** Starts the cluster, with more environment variables; resolves when every service is ready. */
  static async start(
    plan: ClusterPlan = {},
    env: Readonly<Record<string, string>> = {},
  ): Promise<Cluster> {
    let output = "";
    const child = fork(script, ["--plan", JSON.stringify(plan)], {
      env: { ...process.env, ...env, SKALD_NO_BUILD: "1" },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (piece) => {
        output += piece;
      });
    const ended = once(child, "exit").then(() => {
      throw new Error(`the cluster did not start: ${output}`);
    });
    const [addresses] = (await Promise.race([once(child, "message"), ended])) as [Addresses];
    ended.catch(() => undefined);
    return new Cluster(child, addresses);
  }

  /** Sends a signal to a service; resolves when the process is gone, or at once after SIGSTOP and SIGCONT. */
  async end(name: string, signal: NodeJS.Signals): Promise<void> {
    await this.#tell({ name, signal });
  }

  /** Starts a service that was ended; resolves when it is ready. */
  async start(name: string): Promise<void> {
    await this.#tell({ name, start: true });
  }

  /** Cuts or restores a connection of the plan. */
  async cut(link: string, mode: LinkMode): Promise<void> {
    await this.#tell({ link, mode });
  }

  /** The faults of the program that services counted, with their addresses; services that do not answer are left out. */
  async faults(): Promise<string[]> {
    const counted = this.services.map(async (url) => {
      const signal = AbortSignal.timeout(metricsTimeoutMs);
      const text = await fetch(`${url}/metrics`, { signal }).then(
        (answer) => answer.text(),
        () => "",
      );
      const found = text.matchAll(/^loki_(?:grpc_)?panic_total (?!0$).*$/gm);
      return [...found].map(([line]) => `${url}: ${line}`);
    });
    return (await Promise.all(counted)).flat();
  }

  /** Makes an ingester leave for good, with nothing left on its disk only. */
  async leave(name: string): Promise<void> {
    // SIGCONT changes nothing; the answer has the port.
    const { port } = await this.#tell({ name, signal: "SIGCONT" });
    const url = `http://127.0.0.1:${port}/ingester/prepare_shutdown`;
    const answer = await fetch(url, { method: "POST" });
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
    await this.end(name, "SIGTERM");
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }

  async #tell(message: object): Promise<Answer> {
    const id = ++this.#calls;
    const answered = new Promise<Answer>((resolve, reject) => {
      const listen = (answer: Answer & { id: number }) => {
        if (answer.id !== id) return;
        this.#child.off("message", listen);
        if (answer.error === undefined) resolve(answer);
        else reject(new Error(answer.error));
      };
      this.#child.on("message", listen);
    });
    this.#child.send({ id, ...message });
    return answered;
  }
}

interface Answer {
  readonly error?: string;
  readonly port?: number;
}
