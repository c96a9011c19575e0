import { type CommandFlag, type ReadFlags, readFlags } from "./flag-reader.js";
import { type ConfigTree, formatConfig, formatHelp } from "./print.js";
import { type SectionNode, Settings } from "./settings.js";
import { IgnoredKeys, type IgnoredRow, ignoredWarnings } from "./undeclared.js";
import { openYaml } from "./yaml-reader.js";

/** What a program says about its configuration. */
export interface SettingsPlan {
  readonly root: SectionNode;
  /** What is accepted without being declared. */
  readonly ignored: readonly IgnoredRow[];
  /** What is read when no file is named. */
  readonly defaultYaml: string;
  /** First line of `-help` and the text of `-version`. */
  readonly usage: string;
  readonly version: string;
  /** The lines of `-list-targets`. */
  readonly targets: string;
  /** Fills in what follows from the keys that were given; called before `check`. Returns warnings. */
  readonly derive: (settings: Settings) => readonly string[];
  /** Looks at keys together; values that could not be read are told to be broken. */
  readonly check: (settings: Settings, isBroken: (path: string) => boolean) => CheckedSettings;
}

/** What makes a start impossible, and what is only worth a warning. */
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
      /** Asked for by `-print-config-stderr`: to be written there before running. */
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
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what a user writes in the file
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
  const leaves = settings.leaves.values();
  const ignored = new IgnoredKeys(plan.ignored);
  const flags = readFlags(argv, { leaves, commands: commandFlags, ignored });
  const early = earlyExit(plan, flags);
  if (early !== undefined) return early;
  const log: Findings = {
    problems: [...flags.problems],
    warnings: [],
    broken: new Set(),
  };
  const file = chooseFile(plan, flags, surroundings, log);
  if (file !== undefined) readFile(settings, ignored, file, log);
  for (const [path, setting] of flags.settings) settings.give(path, setting);
  settings.ignored.push(...flags.ignored);
  log.problems.push(...refusedKeys(settings));
  log.warnings.push(...ignoredWarnings(settings.ignored), ...plan.derive(settings));
  if (file !== undefined && !log.isUnreadable) {
    const checked = plan.check(settings, (path) => log.broken.has(path));
    log.problems.push(...checked.problems);
    log.warnings.push(...checked.warnings);
  }
  return conclude(plan, flags, settings, log);
}

function* refusedKeys(settings: Settings): Generator<string> {
  for (const [path, { value }] of settings.given()) {
    const refused = settings.leaves.get(path)?.note.refused;
    if (refused !== undefined && value === refused.value) yield `${path}: ${refused.why}`;
  }
}

interface Findings {
  readonly problems: string[];
  readonly warnings: string[];
  /** Paths of keys whose value could not be read. */
  readonly broken: Set<string>;
  isUnreadable?: boolean;
}

interface ConfigFile {
  readonly name: string;
  readonly text: string;
}

function earlyExit(plan: SettingsPlan, flags: ReadFlags): LoadedSettings | undefined {
  const isOn = (name: string): boolean => flags.commands.get(name) === "true";
  if (isOn("help") || isOn("h"))
    return {
      kind: "exit",
      code: 0,
      text: `${plan.usage}\n\n${formatHelp(plan.root, commandFlags)}`,
    };
  if (isOn("version")) return { kind: "exit", code: 0, text: `${plan.version}\n` };
  if (isOn("list-targets")) return { kind: "exit", code: 0, text: plan.targets };
  return undefined;
}

function chooseFile(
  plan: SettingsPlan,
  flags: ReadFlags,
  { env, readFile }: Surroundings,
  log: Findings,
): ConfigFile | undefined {
  const names = flags.commands.get("config.file");
  if (names === undefined) return { name: "default configuration", text: plan.defaultYaml };
  for (const name of names.split(",").map((part) => part.trim())) {
    try {
      const text = readFile(name);
      if (flags.commands.get("config.expand-env") !== "true") return { name, text };
      const expanded = expandEnv(text, env);
      log.problems.push(...expanded.problems.map((problem) => `${name}: ${problem}`));
      return { name, text: expanded.text };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") continue;
      log.problems.push(`cannot read ${name}: ${(error as Error).message}`);
      return undefined;
    }
  }
  log.problems.push(`${names} does not exist, set config.file for custom config path`);
  return undefined;
}

function readFile(settings: Settings, ignored: IgnoredKeys, file: ConfigFile, log: Findings): void {
  const reader = openYaml(file.text, {
    file: file.name,
    unknownKeys: "problem",
    ignored,
    knownPaths: settings.leaves.keys(),
    onBroken: (path) => void log.broken.add(path),
  });
  log.isUnreadable = reader.problems.length > 0;
  if (reader.root !== undefined)
    reader.readSection(reader.root, settings.root, ({ path }, value, origin) =>
      settings.give(path, { value, origin }),
    );
  log.problems.push(...reader.problems);
  log.warnings.push(...reader.warnings);
  settings.ignored.push(...reader.ignored);
}

function conclude(
  plan: SettingsPlan,
  flags: ReadFlags,
  settings: Settings,
  { problems, warnings }: Findings,
): LoadedSettings {
  const lines = warnings.map((warning) => `CONFIG WARNING: ${warning}\n`).join("");
  if (problems.length > 0) {
    const head = problems.length > 1 ? "MULTIPLE CONFIG ERRORS FOUND, PLEASE READ CAREFULLY\n" : "";
    const errors = problems.map((problem) => `CONFIG ERROR: ${problem}\n`).join("");
    return { kind: "exit", code: 1, text: lines + head + errors };
  }
  const isOn = (name: string): boolean => flags.commands.get(name) === "true";
  if (isOn("verify-config")) return { kind: "exit", code: 0, text: `${lines}config is valid\n` };
  const tree = settings.build();
  if (isOn("print-config")) return { kind: "exit", code: 0, text: formatConfig(plan.root, tree) };
  const notice = isOn("print-config-stderr") ? formatConfig(plan.root, tree) : undefined;
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
