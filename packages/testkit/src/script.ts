import { parsePrometheusDuration } from "@skald/model";

/**
 * A query test as text. `load` gives a stream and its rows, `eval` a query and its answer; `#` starts a comment, and
 * the lines that belong to a command are indented.
 *
 * ```
 * load {app="api", env="prod"}
 *   0s   level=error msg="disk full"
 *   30s+10s*6  level=info msg="tick"
 *
 * eval range 0s..1m {app="api"} |= "disk"
 *   0s {app="api", env="prod"} level=error msg="disk full"
 *
 * eval range 0s..1m step 30s count_over_time({app="api"}[30s])
 *   {app="api", env="prod"} 0s:1 30s:1 1m:3
 *
 * eval at 1m sum(count_over_time({app="api"}[1m]))
 *   {} 7
 *
 * eval at 1m sum(
 *   error: parse error at line 1, col 5: syntax error: unexpected $end
 * ```
 */
export interface Script {
  readonly loads: readonly ScriptLoad[];
  readonly evals: readonly ScriptEval[];
}

export interface ScriptLoad {
  /** Label text. */
  readonly stream: string;
  readonly rows: readonly { readonly timeNs: bigint; readonly line: string }[];
}

export interface ScriptEval {
  /** Line of the script, from 1. */
  readonly at: number;
  readonly query: string;
  /** ns; an instant evaluation has from = to and no step. */
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly stepNs?: bigint;
  readonly instant: boolean;
  /** The lines of the answer with runs of blanks after the first word kept as they are. */
  readonly want: readonly string[];
}

/** Parses a script; throws with the line of what it cannot read. */
export function parseScript(text: string): Script {
  const loads: ScriptLoad[] = [];
  const evals: ScriptEval[] = [];
  for (const { head, body, at } of commandsOf(text)) {
    if (head.startsWith("load ")) loads.push(parseLoad(head, body, at));
    else if (head.startsWith("eval ")) evals.push(parseEval(head, body, at));
    else throw new Error(`line ${at}: neither load nor eval: ${head}`);
  }
  return { loads, evals };
}

interface Command {
  readonly head: string;
  readonly body: string[];
  readonly at: number;
}

function commandsOf(text: string): Command[] {
  const commands: Command[] = [];
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "" || line.startsWith("#")) return;
    if (!line.startsWith("  ")) commands.push({ head: line, body: [], at: i + 1 });
    else commands.at(-1)?.body.push(line.slice(2));
  });
  return commands;
}

function parseLoad(head: string, body: readonly string[], at: number): ScriptLoad {
  const rows = body.flatMap((text, i) => {
    const found = /^(\S+?)(?:\+(\S+?)\*(\d+))?\s+(.*)$/.exec(text);
    if (found === null) throw new Error(`line ${at + i + 1}: want "<time> <line>": ${text}`);
    const [, start = "", gap = "0", times = "1", line = ""] = found;
    const count = Number(times);
    return Array.from({ length: count }, (_, n) => ({
      timeNs: duration(start, at) + BigInt(n) * duration(gap, at),
      line,
    }));
  });
  return { stream: head.slice("load ".length).trim(), rows };
}

function parseEval(head: string, want: readonly string[], at: number): ScriptEval {
  const instant = /^eval at (\S+) (.*)$/.exec(head);
  if (instant !== null) {
    const time = duration(instant[1] as string, at);
    return { at, query: instant[2] as string, fromNs: time, toNs: time, instant: true, want };
  }
  const range = /^eval range (\S+?)\.\.(\S+)(?: step (\S+))? (.*)$/.exec(head);
  if (range === null)
    throw new Error(
      `line ${at}: want "eval at T QUERY" or "eval range A..B [step S] QUERY": ${head}`,
    );
  const [, from = "", to = "", step, query = ""] = range;
  const stepNs = step === undefined ? {} : { stepNs: duration(step, at) };
  return {
    at,
    query,
    fromNs: duration(from, at),
    toNs: duration(to, at),
    ...stepNs,
    instant: false,
    want,
  };
}

function duration(text: string, at: number): bigint {
  const ns = text === "0s" ? 0n : parsePrometheusDuration(text);
  if (ns === undefined) throw new Error(`line ${at}: not a duration: ${text}`);
  return ns;
}
