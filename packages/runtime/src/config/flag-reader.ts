import type { LeafNode, Setting } from "./settings.js";
import { type IgnoredKeys, type IgnoredSetting, nearest } from "./undeclared.js";

/** Flags that are not keys: what to do instead of, or before, running. */
export interface CommandFlag {
  readonly name: string;
  readonly kind: "boolean" | "text";
  readonly help: string;
}

export interface FlagOptions {
  readonly leaves: Iterable<LeafNode>;
  readonly commands: readonly CommandFlag[];
  readonly ignored: IgnoredKeys;
}

/**
 * The flags of a command line: `-x=y`, `-x y`, `--x=y` and, for booleans, `-x`; a list flag may be repeated. A flag without
 * effect takes the next argument as its value unless that looks like a flag. Nothing is applied yet, because flags win over
 * the file that they name.
 */
export class FlagReader {
  readonly settings = new Map<string, Setting>();
  /** Values of the command flags that were given; `true` or `false` for booleans. */
  readonly commands = new Map<string, string>();
  readonly problems: string[] = [];
  /** Flags without effect that were given. */
  readonly ignored: IgnoredSetting[] = [];
  readonly #leaves: ReadonlyMap<string, LeafNode>;
  readonly #commands: ReadonlyMap<string, CommandFlag>;
  readonly #ignored: IgnoredKeys;

  constructor(argv: readonly string[], { leaves, commands, ignored }: FlagOptions) {
    this.#leaves = indexFlags(leaves);
    this.#commands = new Map(commands.map((command) => [command.name, command]));
    this.#ignored = ignored;
    for (let i = 0; i < argv.length; i++) {
      const match = /^--?([^-=][^=]*)(?:=([\s\S]*))?$/.exec(argv[i]!);
      if (match === null) {
        this.problems.push(`unexpected argument "${argv[i]}"; flags start with a dash`);
        continue;
      }
      const name = match[1]!;
      let value = match[2];
      const needs = this.#valueNeed(name);
      const next = argv[i + 1];
      if (value === undefined && needs !== "no" && (needs === "yes" || !looksLikeFlag(next))) {
        value = next;
        i++;
      }
      if (value === undefined && needs === "yes") this.problems.push(`flag -${name} needs a value`);
      else this.#read(name, value ?? "true");
    }
  }

  /** Whether a boolean command flag was given. */
  isOn(name: string): boolean {
    return this.commands.get(name) === "true";
  }

  /** Whether a flag that is given without `=` takes the next argument. */
  #valueNeed(name: string): "yes" | "no" | "unless it is a flag" {
    const kind = this.#commands.get(name)?.kind ?? this.#leaves.get(name)?.note.kind;
    if (kind !== undefined) return kind === "boolean" ? "no" : "yes";
    return this.#ignored.whyOf(`-${name}`) === undefined ? "no" : "unless it is a flag";
  }

  #read(name: string, value: string): void {
    const command = this.#commands.get(name);
    const leaf = this.#leaves.get(name);
    if (command === undefined && leaf === undefined) this.#readUndeclared(name, value);
    else if (command === undefined) this.#readKey(name, leaf as LeafNode, value);
    else if (command.kind === "boolean" && value !== "true" && value !== "false")
      this.problems.push(`flag -${name}: "${value}" is not true or false`);
    else this.commands.set(name, value);
  }

  #readKey(name: string, { schema, note, path }: LeafNode, text: string): void {
    const result = schema.safeParse(text);
    if (!result.success) {
      for (const issue of result.error.issues)
        this.problems.push(`flag -${name}: ${issue.message}`);
      return;
    }
    const before = note.kind === "list" ? this.settings.get(path)?.value : undefined;
    const value = Array.isArray(before) ? [...before, ...(result.data as string[])] : result.data;
    this.settings.set(path, { value, origin: `-${name}` });
  }

  #readUndeclared(name: string, value: string): void {
    const key = `-${name}`;
    const why = this.#ignored.whyOf(key);
    if (why !== undefined) {
      this.ignored.push({ key, value, why });
      return;
    }
    const near = nearest(name, [...this.#leaves.keys(), ...this.#commands.keys()]);
    const hint = near === undefined ? "; -help lists all" : `; did you mean -${near}?`;
    this.problems.push(`unknown flag ${key}${hint}`);
  }
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
