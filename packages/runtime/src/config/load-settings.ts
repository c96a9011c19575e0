import { invalidArgument } from "@skald/model";
import type { z } from "zod";
import type { Values } from "./field.js";
import { type CommandFlag, FlagReader } from "./flag-reader.js";
import { type ConfigTree, formatConfig, formatHelp } from "./print.js";
import { readSchema, type SectionNode, Settings } from "./settings.js";
import { IgnoredKeys, type IgnoredRow, ignoredWarnings } from "./undeclared.js";
import { YamlReader } from "./yaml-reader.js";

/** The configuration of a program. */
export interface SettingsPlan {
  readonly root: SectionNode;
  /** Keys that are accepted without being declared. */
  readonly ignored: readonly IgnoredRow[];
  /** The YAML that is read when no file is named. */
  readonly defaultYaml: string;
  /** First line of `-help` and the text of `-version`. */
  readonly usage: string;
  readonly version: string;
  /** The lines of `-list-targets`. */
  readonly targets: string;
  /** Derives defaults from the given keys, before `check` is called; returns warnings. */
  readonly derive: (settings: Settings) => readonly string[];
  /** Checks keys together; `isBroken` says whether the value of a key could not be read. */
  readonly check: (settings: Settings, isBroken: (path: string) => boolean) => CheckedSettings;
}

/** Problems make a start impossible; warnings do not. */
export interface CheckedSettings {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a file; throws with code `ENOENT` when it is not there. */
  readonly readFile: (path: string) => string;
}

/** A configuration to run with, or what to print instead: on stdout when the exit code is 0, else on stderr. */
export type LoadedSettings =
  | {
      readonly kind: "run";
      readonly tree: ConfigTree;
      readonly warnings: readonly string[];
      /** Text for stderr before the start; `-print-config-stderr` asks for it. */
      readonly notice: string | undefined;
    }
  | { readonly kind: "exit"; readonly code: number; readonly text: string };

export const commandFlags: readonly CommandFlag[] = [
  {
    name: "config.file",
    kind: "text",
    help: "YAML file; of several, separated by commas, the first that exists",
  },
  {
    name: "config.expand-env",
    kind: "boolean",
    help: "replace ${NAME} and ${NAME:-default} in the file by environment variables",
  },
  { name: "help", kind: "boolean", help: "print all flags and exit" },
  { name: "h", kind: "boolean", help: "same as -help" },
  { name: "version", kind: "boolean", help: "print the version and exit" },
  { name: "verify-config", kind: "boolean", help: "check the configuration and exit with 0 or 1" },
  {
    name: "print-config",
    kind: "boolean",
    help: "print the configuration with all that follows from it, and exit",
  },
  {
    name: "print-config-stderr",
    kind: "boolean",
    help: "print the configuration on stderr, and run",
  },
  { name: "list-targets", kind: "boolean", help: "print what -target accepts, and exit" },
];

/** Reads flags and file, derives, checks. Never throws for what a user wrote. */
export function loadSettings(
  plan: SettingsPlan,
  argv: readonly string[],
  surroundings: Surroundings,
): LoadedSettings {
  const settings = new Settings(plan.root);
  const ignored = new IgnoredKeys(plan.ignored);
  const leaves = settings.leaves.values();
  const flags = new FlagReader(argv, { leaves, commands: commandFlags, ignored });
  if (flags.isOn("help") || flags.isOn("h"))
    return exit(0, `${plan.usage}\n\n${formatHelp(plan.root, commandFlags)}`);
  if (flags.isOn("version")) return exit(0, `${plan.version}\n`);
  if (flags.isOn("list-targets")) return exit(0, plan.targets);
  const problems = [...flags.problems];
  const warnings: string[] = [];
  /** Paths of keys whose value could not be read. */
  const broken = new Set<string>();
  const file = chooseFile(plan, flags, surroundings, problems);
  let isReadable = false;
  if (file !== undefined) {
    const reader = new YamlReader(file.text, {
      ...{ file: file.name, unknownKeys: "problem", ignored },
      knownPaths: settings.leaves.keys(),
      onBroken: (path) => void broken.add(path),
    });
    isReadable = reader.problems.length === 0;
    if (reader.root !== undefined)
      reader.readSection(reader.root, settings.root, ({ path }, value, origin) =>
        settings.give(path, { value, origin }),
      );
    problems.push(...reader.problems);
    warnings.push(...reader.warnings);
    settings.ignored.push(...reader.ignored);
  }
  for (const [path, setting] of flags.settings) settings.give(path, setting);
  settings.ignored.push(...flags.ignored);
  problems.push(...refusedKeys(settings));
  warnings.push(...ignoredWarnings(settings.ignored), ...plan.derive(settings));
  if (isReadable) {
    const checked = plan.check(settings, (path) => broken.has(path));
    problems.push(...checked.problems);
    warnings.push(...checked.warnings);
  }
  return conclude(plan, flags, settings, { problems, warnings });
}

function exit(code: number, text: string): LoadedSettings {
  return { kind: "exit", code, text };
}

function* refusedKeys(settings: Settings): Generator<string> {
  for (const [path, { value }] of settings.given()) {
    const refused = settings.leaves.get(path)?.note.refused;
    if (refused !== undefined && value === refused.value) yield `${path}: ${refused.why}`;
  }
}

/** The configuration file; undefined, with a problem noted, if it cannot be read. */
function chooseFile(
  { defaultYaml }: SettingsPlan,
  flags: FlagReader,
  { env, readFile }: Surroundings,
  problems: string[],
): { readonly name: string; readonly text: string } | undefined {
  const names = flags.commands.get("config.file");
  if (names === undefined) return { name: "default configuration", text: defaultYaml };
  for (const name of names.split(",").map((part) => part.trim())) {
    try {
      const text = readFile(name);
      if (!flags.isOn("config.expand-env")) return { name, text };
      const expanded = expandEnv(text, env);
      problems.push(...expanded.problems.map((problem) => `${name}: ${problem}`));
      return { name, text: expanded.text };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") continue;
      problems.push(`cannot read ${name}: ${(error as Error).message}`);
      return undefined;
    }
  }
  problems.push(`${names} does not exist, set config.file for custom config path`);
  return undefined;
}

function conclude(
  { root }: SettingsPlan,
  flags: FlagReader,
  settings: Settings,
  { problems, warnings }: CheckedSettings,
): LoadedSettings {
  const lines = warnings.map((warning) => `CONFIG WARNING: ${warning}\n`).join("");
  if (problems.length > 0) {
    const head = problems.length > 1 ? "MULTIPLE CONFIG ERRORS FOUND, PLEASE READ CAREFULLY\n" : "";
    const errors = problems.map((problem) => `CONFIG ERROR: ${problem}\n`).join("");
    return exit(1, lines + head + errors);
  }
  if (flags.isOn("verify-config")) return exit(0, `${lines}config is valid\n`);
  const tree = settings.build();
  if (flags.isOn("print-config")) return exit(0, formatConfig(root, tree));
  const notice = flags.isOn("print-config-stderr") ? formatConfig(root, tree) : undefined;
  return { kind: "run", tree, warnings, notice };
}

/** The text with its variables replaced, or what is wrong with it. */
export interface Expansion {
  readonly text: string;
  readonly problems: readonly string[];
}

/**
 * Replaces `${NAME}`, `${NAME:-default}` and `${NAME:=default}` (also without the colon: a variable that is set but
 * empty then stays empty). A missing variable without default becomes empty; `$${` is a literal `${`. Defaults may
 * hold variables themselves.
 */
export function expandEnv(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Expansion {
  const problems: string[] = [];
  const expand = (input: string): string => {
    let out = "";
    let from = 0;
    for (let at = input.indexOf("${"); at >= 0; at = input.indexOf("${", from)) {
      if (input[at - 1] === "$" && at - 1 >= from) {
        out += `${input.slice(from, at - 1)}\${`;
        from = at + 2;
        continue;
      }
      const end = closingBrace(input, at + 2);
      if (end < 0) {
        problems.push(`"${input.slice(at, at + 20)}" has no closing brace`);
        break;
      }
      out += input.slice(from, at) + lookUp(input.slice(at + 2, end));
      from = end + 1;
    }
    return out + input.slice(from);
  };
  const lookUp = (reference: string): string => {
    const match = /^([A-Za-z_]\w*)(?:(:?)[-=]([\s\S]*))?$/.exec(reference);
    if (match === null) {
      problems.push(`cannot expand "\${${reference}}"; write \${NAME} or \${NAME:-default}`);
      return "";
    }
    const value = env[match[1] as string];
    const isMissing = value === undefined || (match[2] === ":" && value === "");
    return isMissing ? expand(match[3] ?? "") : value;
  };
  return { text: expand(text), problems };
}

function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "{" && text[i - 1] === "$") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
    else if (text[i] === "\n") return -1;
  }
  return -1;
}

/** Reads a file of its own kind by its schema; throws all that is wrong with it, unknown keys too. */
export function readFileBySchema<S extends z.ZodObject>(
  text: string,
  file: string,
  schema: S,
): Values<S> {
  const settings = new Settings(readSchema(schema));
  const reader = new YamlReader(text, {
    ...{ file, unknownKeys: "problem", ignored: new IgnoredKeys([]) },
    knownPaths: settings.leaves.keys(),
  });
  const give = (leaf: { readonly path: string }, value: unknown, origin: string) =>
    settings.give(leaf.path, { value, origin });
  if (reader.root !== undefined) reader.readSection(reader.root, settings.root, give);
  if (reader.problems.length > 0) throw invalidArgument(reader.problems.join("; "));
  return settings.build() as Values<S>;
}
