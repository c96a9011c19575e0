import type { LeafNode, Setting } from "./settings.js";
import type { IgnoredKeys, IgnoredSetting } from "./undeclared.js";
import { nearest } from "./undeclared.js";

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
  /** Flags without effect that were given. */
  readonly ignored: readonly IgnoredSetting[];
}

export interface FlagOptions {
  readonly leaves: Iterable<LeafNode>;
  readonly commands: readonly CommandFlag[];
  readonly ignored: IgnoredKeys;
}

/**
 * Reads `-x=y`, `-x y`, `--x=y` and, for booleans, `-x`; a list flag may be repeated. A flag without effect takes the next
 * argument as its value unless that looks like a flag.
 */
export function readFlags(argv: readonly string[], options: FlagOptions): ReadFlags {
  const context: Context = {
    byFlag: indexFlags(options.leaves),
    commandByName: new Map(options.commands.map((command) => [command.name, command])),
    ignoredKeys: options.ignored,
    settings: new Map(),
    commands: new Map(),
    problems: [],
    ignored: [],
  };
  for (let i = 0; i < argv.length; i++) {
    const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(argv[i]!);
    if (match === null) {
      context.problems.push(`unexpected argument "${argv[i]}"; flags start with a dash`);
      continue;
    }
    const name = match[1]!;
    let value = match[2];
    const needs = valueNeed(context, name);
    const next = argv[i + 1];
    if (value === undefined && needs !== "no" && (needs === "yes" || !looksLikeFlag(next))) {
      value = next;
      i++;
    }
    if (value === undefined && needs === "yes")
      context.problems.push(`flag -${name} needs a value`);
    else readFlag(context, name, value ?? "true");
  }
  return context;
}

interface Context {
  readonly byFlag: ReadonlyMap<string, LeafNode>;
  readonly commandByName: ReadonlyMap<string, CommandFlag>;
  readonly ignoredKeys: IgnoredKeys;
  readonly settings: Map<string, Setting>;
  readonly commands: Map<string, string>;
  readonly problems: string[];
  readonly ignored: IgnoredSetting[];
}

function readFlag(context: Context, name: string, value: string): void {
  const command = context.commandByName.get(name);
  const leaf = context.byFlag.get(name);
  if (command !== undefined) readCommand(context, command, value);
  else if (leaf !== undefined) readValue(context, name, leaf, value);
  else readUndeclared(context, name, value);
}

function readUndeclared(context: Context, name: string, value: string): void {
  const why = context.ignoredKeys.whyOf(`-${name}`);
  if (why !== undefined) {
    context.ignored.push({ key: `-${name}`, value, why });
    return;
  }
  const near = nearest(name, [...context.byFlag.keys(), ...context.commandByName.keys()]);
  const hint = near === undefined ? "; -help lists all" : `; did you mean -${near}?`;
  context.problems.push(`unknown flag -${name}${hint}`);
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

/** Whether a flag that is given without `=` takes the next argument. */
function valueNeed(context: Context, name: string): "yes" | "no" | "unless it is a flag" {
  const command = context.commandByName.get(name);
  const leaf = context.byFlag.get(name);
  const kind = command?.kind ?? leaf?.note.kind;
  if (kind !== undefined) return kind === "boolean" ? "no" : "yes";
  return context.ignoredKeys.whyOf(`-${name}`) === undefined ? "no" : "unless it is a flag";
}

function looksLikeFlag(argument: string | undefined): boolean {
  return argument === undefined || /^--?[a-zA-Z]/.test(argument);
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
