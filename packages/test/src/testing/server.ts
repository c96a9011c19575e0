import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const bundle = fileURLToPath(new URL("../../../skald/bundle/main.js", import.meta.url));

/** A process that may not be ready yet. */
export interface StartedProcess {
  readonly process: ChildProcess;
  /** Everything that it logged so far. */
  log(): string;
  /** Sends a signal; resolves when the process is gone, with its exit code or the signal that killed it. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
}

/** A running single process with its own data folder. */
export interface TestServer extends StartedProcess {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
}

/** Creates a folder that `removeFolders` deletes. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skald-e2e-"));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];
const children = new Set<ChildProcess>();

/** Kills the servers that a failed test left behind, and deletes all folders. */
export async function removeFolders(): Promise<void> {
  await Promise.all([...children].map((child) => end(child, "SIGKILL")));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

export interface StartOptions {
  /** The path of a Node; default: the one that runs the tests. */
  readonly node?: string;
  /** The path of the program; default: the bundle. */
  readonly main?: string;
  /** Arguments for Node. */
  readonly nodeFlags?: readonly string[];
  /** Environment variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the program on a free port and does not wait for it. */
export function spawnServer(
  folder: string,
  flags: readonly string[] = [],
  options: StartOptions = {},
): StartedProcess {
  const args = [
    ...(options.nodeFlags ?? []),
    options.main ?? bundle,
    "-server.http-listen-port=0",
    "-server.http-listen-address=127.0.0.1",
    `-common.path-prefix=${folder}`,
    // One on every machine, because each thread takes a fifth of a second to start.
    "-server.worker-threads=1",
    ...flags,
  ];
  const child = spawn(options.node ?? process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: folder,
    env: { ...process.env, ...options.env },
  });
  children.add(child);
  child.once("exit", () => children.delete(child));
  let text = "";
  const onData = (chunk: Buffer) => {
    text += chunk.toString();
  };
  child.stdout.on("data", onData);
  child.stderr.on("data", onData);
  return { process: child, log: () => text, kill: (signal) => end(child, signal) };
}

/** Resolves with the address of a process as soon as it listens; rejects with its log when it ends first. */
export async function urlOf(started: StartedProcess): Promise<string> {
  const port = () => /"port":(\d+)[^\n]*"msg":"listening"/.exec(started.log())?.[1];
  await waitFor(() => {
    const { exitCode, signalCode } = started.process;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`the server ended with ${exitCode ?? signalCode}:\n${started.log()}`);
    return port() !== undefined;
  });
  return `http://127.0.0.1:${port()}`;
}

/** Resolves with the address of a process as soon as it is ready; rejects when it ends first. */
export async function untilReady(started: StartedProcess): Promise<string> {
  const url = await urlOf(started);
  await waitFor(async () => (await fetch(`${url}/ready`)).ok);
  return url;
}

/** Starts the program on a free port and waits until it is ready. */
export async function startServer(
  folder: string,
  flags: readonly string[] = [],
  options: StartOptions = {},
): Promise<TestServer> {
  const started = spawnServer(folder, flags, options);
  const url = await untilReady(started);
  return { ...started, url, port: Number(new URL(url).port), folder };
}

/** The paths of files below a folder that end with `end`, relative to the folder; empty when there is no such folder. */
export function filesBelow(folder: string, end: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(end))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** The peak memory of a server in bytes; 0 where the system does not report it. */
export function peakMemoryBytes({ process: { pid } }: TestServer): number {
  try {
    const found = /VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return Number(found?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Checks a condition every 10 ms until it is true; rejects after `timeoutMs`. */
export async function waitFor(
  condition: () => Promise<boolean> | boolean,
  timeoutMs = 120_000,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    if (await condition()) return;
    if (Date.now() > end) throw new Error(`not true after ${timeoutMs} ms: ${condition}`);
    await pause(10);
  }
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | NodeJS.Signals> {
  return new Promise((resolve) => {
    const answer = () => resolve(child.exitCode ?? (child.signalCode as NodeJS.Signals));
    if (child.exitCode !== null || child.signalCode !== null) return answer();
    child.once("exit", answer);
    child.kill(signal);
  });
}

/** The program as users start it. */
export const binSkald = fileURLToPath(new URL("../../../../bin/skald", import.meta.url));

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a Node program until it exits. */
export function runProgram(
  script: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly input?: string;
    /** Environment variables beside those of this process. */
    readonly env?: Readonly<Record<string, string>>;
    /** Sends SIGTERM to the program when it aborts. */
    readonly end?: AbortSignal;
  } = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.stdin.end(options.input ?? "");
    options.end?.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}
