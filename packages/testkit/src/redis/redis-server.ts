import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.js";
import { findRealRedis, type RedisProgram } from "./redis-program.js";

/** A Redis as a process on a port of its own that can be killed and started again, with nothing kept on disk. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #command: readonly [program: string, ...args: string[]];
  #process: ChildProcess | undefined;

  private constructor(port: number, directory: string, command: RedisProgram["command"]) {
    this.port = port;
    this.#directory = directory;
    this.#command = [...command, "--port", String(port), "--bind", "127.0.0.1"];
  }

  /** Starts one, with more arguments as of the command line of redis-server. */
  static async start({ command }: RedisProgram, ...more: string[]): Promise<RedisServer> {
    const directory = await mkdtemp(join(tmpdir(), "skald-redis-"));
    const [program, ...args] = command;
    const all = [...args, "--save", "", "--appendonly", "no", ...more];
    const server = new RedisServer(await freePort(), directory, [program, ...all]);
    await server.restart();
    return server;
  }

  /** Starts a Sentinel that knows a master at a port of this machine; only a real Redis can be one. */
  static async startSentinel(name: string, port: number): Promise<RedisServer> {
    const directory = await mkdtemp(join(tmpdir(), "skald-sentinel-"));
    const configuration = join(directory, "sentinel.conf");
    await writeFile(configuration, `sentinel monitor ${name} 127.0.0.1 ${port} 1\n`);
    const program = findRealRedis()?.command[0] ?? "redis-server";
    const command: RedisProgram["command"] = [program, configuration, "--sentinel"];
    const server = new RedisServer(await freePort(), directory, command);
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
    const [program, ...args] = this.#command;
    const child = spawn(program, args, {
      cwd: this.#directory,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      let output = "";
      child.stdout.on("data", (piece) => {
        output += piece;
        if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
      });
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`${program} did not start: ${output}`)));
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
