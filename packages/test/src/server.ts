import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../skald/dist/main.js", import.meta.url));

/** A running single process with a data folder of its own. */
export interface TestServer {
  readonly url: string;
  readonly folder: string;
  readonly process: ChildProcess;
  /** What it logged so far. */
  log(): string;
  /** Resolves when the process is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** A folder that `removeFolders` deletes. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "skald-e2e-"));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** Starts the program on a free port and waits until it is ready. */
export async function startServer(
  folder: string,
  flags: readonly string[] = [],
): Promise<TestServer> {
  const child = spawn(
    process.execPath,
    [
      main,
      "-server.http-listen-port=0",
      "-server.http-listen-address=127.0.0.1",
      `-common.path-prefix=${folder}`,
      ...flags,
    ],
    { stdio: ["ignore", "pipe", "pipe"], cwd: folder },
  );
  let text = "";
  const port = await new Promise<number>((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      text += chunk.toString();
      const found = /"port":(\d+)[^\n]*"msg":"listening"/.exec(text);
      if (found !== null) resolve(Number(found[1]));
    };
    child.stdout?.on("data", onData);
    child.stderr?.on("data", onData);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${text}`)));
  });
  const url = `http://127.0.0.1:${port}`;
  await waitFor(async () => (await fetch(`${url}/ready`)).ok);
  return {
    url,
    folder,
    process: child,
    log: () => text,
    kill: (signal) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve();
        child.once("exit", () => resolve());
        child.kill(signal);
      }),
  };
}

/** Asks again and again until the answer is true; fails after the time. */
export async function waitFor(
  condition: () => Promise<boolean> | boolean,
  timeoutMs = 30_000,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    if (await condition()) return;
    if (Date.now() > end) throw new Error(`not true after ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
