import { Readable } from "node:stream";
import { runCommandLine } from "../program.js";
import type { Io } from "../shell/command.js";

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process; what it does not need of a process is missing. */
export async function runForTest(
  argv: readonly string[],
  given: {
    readonly host?: Partial<Io["host"]>;
    readonly env?: Io["env"];
    readonly input?: string;
    readonly signal?: AbortSignal;
  } = {},
): Promise<CommandResult> {
  const out: string[] = [];
  const err: string[] = [];
  const missing = () => Promise.reject(new Error("the test has none"));
  const code = await runCommandLine(argv, {
    stdin: Readable.from(given.input === undefined ? [] : [Buffer.from(given.input)]),
    stdout: { write: (text) => out.push(String(text)) },
    stderr: { write: (text) => err.push(String(text)) },
    env: given.env ?? {},
    signal: given.signal ?? new AbortController().signal,
    host: {
      openBucket: missing,
      startServer: missing,
      openThreads: missing,
      checkConfig: missing,
      ...given.host,
    },
  });
  return { code, out: out.join(""), err: err.join("") };
}
