import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@skald/testkit";

/** A real Redis on a port of its own that can be stopped and started, with nothing kept on disk. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #arguments: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(port: number, directory: string, more: readonly string[]) {
    this.port = port;
    this.#directory = directory;
    this.#arguments = more;
  }

  /** Starts one, with more arguments as of its command line; says what to install when there is none. */
  static async start(...more: string[]): Promise<RedisServer> {
    if (spawnSync("redis-server", ["--version"]).error !== undefined)
      throw new Error("redis-server is not installed: apt-get install redis-server");
    const directory = await mkdtemp(join(tmpdir(), "skald-redis-"));
    const server = new RedisServer(await freePort(), directory, more);
    await server.restart();
    return server;
  }

  /** Starts a Sentinel that knows a master at a port of this machine. */
  static async startSentinel(name: string, port: number): Promise<RedisServer> {
    const directory = await mkdtemp(join(tmpdir(), "skald-sentinel-"));
    const configuration = join(directory, "sentinel.conf");
    await writeFile(configuration, `sentinel monitor ${name} 127.0.0.1 ${port} 1\n`);
    const server = new RedisServer(await freePort(), directory, [configuration, "--sentinel"]);
    await server.restart();
    return server;
  }

  /** Sends a command, and returns what came back. */
  async command(...words: string[]): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    const parts = words.map((word) => `$${word.length}\r\n${word}\r\n`);
    socket.write(`*${words.length}\r\n${parts.join("")}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    return answer.toString();
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts it again, empty, and returns when it takes connections. */
  async restart(): Promise<void> {
    const isSentinel = this.#arguments.includes("--sentinel");
    const child = spawn(
      "redis-server",
      [
        ...this.#arguments.filter((word) => word.startsWith("/")),
        ...["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#directory],
        ...(isSentinel ? [] : ["--save", "", "--appendonly", "no"]),
        ...this.#arguments.filter((word) => !word.startsWith("/")),
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      let output = "";
      child.stdout.on("data", (piece) => {
        output += piece;
        if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
      });
      child.once("exit", () => reject(new Error(`redis-server did not start: ${output}`)));
    });
  }

  /** Kills it: what it had is gone. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
