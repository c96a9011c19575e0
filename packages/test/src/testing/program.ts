import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The program as users start it. */
export const binSkald = fileURLToPath(new URL("../../../../bin/skald", import.meta.url));

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a Node program to its end. */
export function runProgram(
  script: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly input?: string;
    /** Beside what this process has. */
    readonly env?: Readonly<Record<string, string>>;
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
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}
