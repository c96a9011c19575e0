import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../../../../scripts/cluster.mjs", import.meta.url));

/** The cluster of `npm run cluster`, and the hand that ends its processes. */
export class Cluster {
  readonly gateway: string;
  readonly #child: ChildProcess;
  #calls = 0;

  private constructor(child: ChildProcess, gateway: string) {
    this.#child = child;
    this.gateway = gateway;
  }

  /** Starts all of it, with an environment beside that of this process; resolves when every service is ready. */
  static async start(env: Readonly<Record<string, string>> = {}): Promise<Cluster> {
    let output = "";
    const child = fork(script, [], {
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
    const [{ gateway }] = (await Promise.race([once(child, "message"), ended])) as [
      { gateway: string },
    ];
    ended.catch(() => undefined);
    return new Cluster(child, gateway);
  }

  /** Ends a service, and resolves when it is gone. */
  async end(name: string, signal: NodeJS.Signals): Promise<void> {
    await this.#tell({ name, signal });
  }

  /** Starts one that was ended; resolves when it is ready. */
  async start(name: string): Promise<void> {
    await this.#tell({ name, start: true });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }

  async #tell(message: object): Promise<void> {
    const id = ++this.#calls;
    const answered = new Promise<void>((resolve) => {
      const listen = (answer: { id: number }) => {
        if (answer.id !== id) return;
        this.#child.off("message", listen);
        resolve();
      };
      this.#child.on("message", listen);
    });
    this.#child.send({ id, ...message });
    await answered;
  }
}
