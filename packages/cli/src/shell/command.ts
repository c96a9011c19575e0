import type { Readable } from "node:stream";

/** Declares a command: what it is called with, and what it does. The one way to add a command; see `table.ts`. */
export function command<F extends Flags>(declared: Command<F>): AnyCommand {
  return declared as unknown as AnyCommand;
}

export interface Command<F extends Flags> {
  /** Arguments as help shows them: `<selector>`, `[logql]`, `[files...]`. */
  readonly args: string;
  /** The text of its help, below the usage. */
  readonly says: string;
  readonly flags: F;
  /** Flags that are not declared go to `given.rest` in place of an error. */
  readonly takesOtherFlags?: boolean;
  /** Resolves with the exit code. */
  run(given: Given<F>, io: Io): Promise<number>;
}

export type AnyCommand = Command<Flags>;

/** A command line that was read. */
export interface Given<F extends Flags> {
  /** Arguments in their order. */
  readonly args: readonly string[];
  /** Flags, environment, context and defaults. */
  readonly flags: Values<F>;
  /** Whether a flag, a variable or the context set it. */
  isSet(name: keyof F & string): boolean;
  /** Flags that the command did not declare, as they came. */
  readonly rest: readonly string[];
}

export interface Flag<T = unknown> {
  readonly kind: "text" | "number" | "boolean" | "list";
  readonly says: string;
  readonly value: T;
  readonly short?: string;
  /** The variables `SKALD_<env>` and `LOKI_<env>` set it. */
  readonly env?: string;
  readonly choices?: readonly string[];
  /** What help shows for the value. */
  readonly shown?: string;
}

export type Flags = Readonly<Record<string, Flag>>;
export type Values<F extends Flags> = {
  readonly [N in keyof F]: F[N] extends Flag<infer T> ? T : never;
};

type More = Partial<Pick<Flag, "short" | "env" | "choices" | "shown">>;

export const flag = {
  text: (says: string, value = "", more: More = {}): Flag<string> => {
    return { kind: "text", says, value, ...more };
  },
  number: (says: string, value: number, more: More = {}): Flag<number> => {
    return { kind: "number", says, value, ...more };
  },
  boolean: (says: string, more: More = {}): Flag<boolean> => {
    return { kind: "boolean", says, value: false, ...more };
  },
  /** May be repeated. */
  list: (says: string, more: More = {}): Flag<readonly string[]> => {
    return { kind: "list", says, value: [], ...more };
  },
} as const;

export interface Output {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  /** False when the text had to be buffered. */
  write(text: string | Uint8Array): unknown;
  once?(event: "drain", listener: () => void): unknown;
}

/** What the process gives to a command. */
export interface Io {
  readonly stdin: Readable;
  readonly stdout: Output;
  /** Takes notes, progress and errors; answers never go here. */
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts at Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
  /** What only the program knows, because it reads the server's configuration. */
  readonly host: Host;
}

export interface Host {
  /** The bucket that flags of the server describe; throws for flags that nobody knows. */
  readonly openBucket: (
    place: { readonly bucket: string; readonly prefix: string },
    flags: readonly string[],
  ) => Promise<OpenBucket>;
  /** What is wrong with a configuration, and what the server warns of. */
  readonly checkConfig: (flags: readonly string[]) => Promise<ConfigVerdict>;
  /** Worker threads for jobs by name, as many as asked for; 0: one for each core. */
  readonly openThreads: (size: number) => Promise<JobThreads>;
  /** Runs a server without a log in this process, with these flags; resolves once it is ready. */
  readonly startServer: (flags: readonly string[]) => Promise<LocalServer>;
}

export interface JobThreads {
  readonly size: number;
  run<T>(name: string, job: unknown): Promise<T>;
  readonly close: () => Promise<void>;
}

export interface OpenBucket {
  readonly store: import("@skald/storage").ObjectStore;
  readonly close: () => Promise<void>;
}

export interface ConfigVerdict {
  readonly error: string | undefined;
  readonly warnings: readonly string[];
}

export interface LocalServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Exit codes of all commands. */
export const exits = {
  done: 0,
  /** Damage, a failed check, or a difference. */
  found: 1,
  usage: 2,
  /** The server answered 4xx. */
  refused: 3,
  /** The server was not reached, or answered 5xx, after all retries. */
  unreached: 4,
  /** Something was answered, but not all. */
  partial: 5,
  interrupted: 130,
} as const;

/** An error that ends a command with its exit code and its message, and without a stack. */
export class Failure extends Error {
  readonly exit: number;

  constructor(exit: keyof typeof exits, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exits[exit];
  }
}

/** Writes to stdout at the pace of its reader; rejects when the command is to end. */
export async function writeAll(
  { stdout, signal }: Pick<Io, "stdout" | "signal">,
  text: string | Uint8Array,
): Promise<void> {
  if (text.length === 0 || stdout.write(text) !== false || stdout.once === undefined) return;
  await new Promise<void>((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    stdout.once?.("drain", () => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
  });
}

/** The name and the value of `Name: value`. */
export function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Failure("usage", `--header: ${text} is not "NAME: VALUE"`);
  return [name, value];
}
