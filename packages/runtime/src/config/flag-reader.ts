import { nearest } from "./nearest.js";
import type { LeafNode } from "./schema.js";
import type { Setting } from "./settings.js";

/** Flags that are no keys: what to do instead of, or before, running. */
export interface CommandFlag {
  readonly name: string;
  readonly kind: "boolean" | "text";
  readonly help: string;
}

/** The command line, read. Nothing of it is applied yet, because flags win over the file they name. */
export interface ReadFlags {
  readonly settings: ReadonlyMap<string, Setting>;
  /** Values of the command flags that were given; `true` or `false` for booleans. */
  readonly commands: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

export interface FlagOptions {
  readonly leaves: Iterable<LeafNode>;
  readonly commands: readonly CommandFlag[];
  /** Flags that are accepted and do nothing, and why. */
  readonly ignored: ReadonlyMap<string, string>;
}

/** Reads `-x=y`, `-x y`, `--x=y` and, for booleans, `-x`; a list flag may be repeated. */
export function readFlags(argv: readonly string[], options: FlagOptions): ReadFlags {
  const context: Context = {
    byFlag: indexFlags(options.leaves),
    commandByName: new Map(options.commands.map((command) => [command.name, command])),
    ignored: options.ignored,
    settings: new Map(),
    commands: new Map(),
    problems: [],
    warnings: [],
  };
  for (let i = 0; i < argv.length; i++) {
    const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(argv[i]!);
    if (match === null) {
      context.problems.push(`unexpected argument "${argv[i]}"; flags start with a dash`);
      continue;
    }
    const name = match[1]!;
    let value = match[2];
    if (value === undefined && needsValue(context, name)) {
      value = argv[++i];
      if (value === undefined) {
        context.problems.push(`flag -${name} needs a value`);
        continue;
      }
    }
    readFlag(context, name, value ?? "true");
  }
  return context;
}

interface Context {
  readonly byFlag: ReadonlyMap<string, LeafNode>;
  readonly commandByName: ReadonlyMap<string, CommandFlag>;
  readonly ignored: ReadonlyMap<string, string>;
  readonly settings: Map<string, Setting>;
  readonly commands: Map<string, string>;
  readonly problems: string[];
  readonly warnings: string[];
}

function readFlag(context: Context, name: string, value: string): void {
  const command = context.commandByName.get(name);
  const leaf = context.byFlag.get(name);
  const ignored = context.ignored.get(name);
  if (command !== undefined) readCommand(context, command, value);
  else if (leaf !== undefined) readValue(context, name, leaf, value);
  else if (ignored !== undefined) context.warnings.push(`flag -${name}: ${ignored}`);
  else {
    const near = nearest(name, [...context.byFlag.keys(), ...context.commandByName.keys()]);
    const hint = near === undefined ? "; -help lists all" : `; did you mean -${near}?`;
    context.problems.push(`unknown flag -${name}${hint}`);
  }
}

function readCommand(context: Context, command: CommandFlag, value: string): void {
  if (command.kind === "boolean" && value !== "true" && value !== "false")
    context.problems.push(`flag -${command.name}: "${value}" is not true or false`);
  else context.commands.set(command.name, value);
}

function readValue(context: Context, name: string, leaf: LeafNode, text: string): void {
  const result = leaf.schema.safeParse(text);
  if (!result.success) {
    for (const issue of result.error.issues)
      context.problems.push(`flag -${name}: ${issue.message}`);
    return;
  }
  const before = leaf.note.kind === "list" ? context.settings.get(leaf.path)?.value : undefined;
  const value = Array.isArray(before) ? [...before, ...(result.data as string[])] : result.data;
  context.settings.set(leaf.path, { value, origin: `-${name}` });
}

function needsValue(context: Context, name: string): boolean {
  const command = context.commandByName.get(name);
  if (command !== undefined) return command.kind !== "boolean";
  const leaf = context.byFlag.get(name);
  return leaf !== undefined && leaf.note.kind !== "boolean";
}

function indexFlags(leaves: Iterable<LeafNode>): Map<string, LeafNode> {
  const byFlag = new Map<string, LeafNode>();
  for (const leaf of leaves) {
    const { flag } = leaf.note;
    if (flag === undefined) continue;
    const other = byFlag.get(flag);
    if (other !== undefined) throw new Error(`flag -${flag} of ${leaf.path} and ${other.path}`);
    byFlag.set(flag, leaf);
  }
  return byFlag;
}
