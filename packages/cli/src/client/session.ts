import { Failure, type Io, type Values, writeAll } from "../shell/command.js";
import { formatTime, parseDuration, parseTime, Zone } from "../shell/times.js";
import { Client } from "./client.js";
import type { askFlags, rangeFlags } from "./flags.js";
import { connectionOf } from "./settings.js";

type AskFlags = Omit<Values<typeof askFlags>, "output">;

/** What the commands that ask something have in common: the client, the zone, notes, and whether output is coloured. */
export class Session {
  readonly client: Client;
  readonly zone: Zone;
  readonly io: Io;
  readonly isQuiet: boolean;

  constructor(flags: AskFlags, io: Io) {
    this.io = io;
    this.isQuiet = flags.quiet;
    this.zone = new Zone(flags.timezone);
    this.client = new Client(connectionOf(flags, io.env), io.signal);
    for (const name of ["cpuprofile", "memprofile"] as const)
      if (flags[name] !== "") this.note(`--${name} has no meaning here`);
  }

  /** Writes a note to stderr, if notes are wanted. */
  note(text: string): void {
    if (!this.isQuiet) this.io.stderr.write(`${text}\n`);
  }

  /** Writes a part of the answer at the pace of its reader. */
  write(text: string | Uint8Array): Promise<void> {
    return writeAll(this.io, text);
  }

  /** A time as notes show it. */
  time(ns: bigint): string {
    return formatTime(ns, this.zone);
  }

  /** The range of time that flags ask for. */
  range(flags: Values<typeof rangeFlags>): { readonly fromNs: bigint; readonly toNs: bigint } {
    const nowNs = BigInt(Date.now()) * 1_000_000n;
    const toNs = flags.to === "" ? nowNs : parseTime("to", flags.to, this.zone, nowNs);
    if (flags.from !== "") return { fromNs: parseTime("from", flags.from, this.zone, nowNs), toNs };
    return { fromNs: toNs - parseDuration("since", flags.since), toNs };
  }
}

/** Whether to colour: `--color always|never`, else what `NO_COLOR`, `FORCE_COLOR` and the terminal say. */
export function wantsColour(choice: string, { stdout, env }: Io): boolean {
  if (choice === "always" || choice === "never") return choice === "always";
  if ((env.NO_COLOR ?? "") !== "") return false;
  return stdout.isTTY === true || (env.FORCE_COLOR ?? "") !== "";
}

const queryBytesMax = 1024 * 1024;

/** The query of a command line; that of stdin for `-`, and where there is none but a pipe. */
export async function readQuery([text]: readonly string[], { stdin }: Io): Promise<string> {
  if (text !== undefined && text !== "-") return text;
  const isTerminal = (stdin as { isTTY?: boolean }).isTTY === true;
  if (text === undefined && isTerminal)
    throw new Failure("usage", "name a query, such as '{app=\"api\"}'");
  const found = (await readAll(stdin)).trim();
  if (found === "") throw new Failure("usage", "name a query, such as '{app=\"api\"}'");
  return found;
}

async function readAll(stdin: Io["stdin"]): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin) {
    parts.push(Buffer.from(part));
    bytes += (part as Buffer).length;
    if (bytes > queryBytesMax)
      throw new Failure("usage", "the query on stdin is longer than 1 MiB");
  }
  return Buffer.concat(parts).toString("utf8");
}
