import { expandEnv } from "./expand-env.js";
import { type CommandFlag, type ReadFlags, readFlags } from "./flag-reader.js";
import { findMarked } from "./marked.js";
import { type ConfigTree, formatConfig, formatHelp } from "./print.js";
import { type LeafNode, type SectionNode, sectionsOf } from "./schema.js";
import { Settings } from "./settings.js";
import { openYaml } from "./yaml-reader.js";

/** What a program says about its configuration. */
export interface SettingsPlan {
  readonly root: SectionNode;
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
  const flags = readFlags(argv, {
    leaves,
    commands: commandFlags,
    ignored: ignoredFlags(plan.root),
  });
  const early = earlyExit(plan, flags);
  if (early !== undefined) return early;
  const log: Findings = {
    problems: [...flags.problems],
    warnings: [...flags.warnings],
    broken: new Set(),
  };
  const file = chooseFile(plan, flags, surroundings, log);
  if (file !== undefined) readFile(plan, settings, file, log);
  for (const [path, setting] of flags.settings) settings.give(path, setting);
  const marked = findMarked(givenLeaves(settings));
  log.problems.push(...marked.problems);
  log.warnings.push(...marked.warnings, ...plan.derive(settings));
  if (file !== undefined && !log.isUnreadable) {
    const checked = plan.check(settings, (path) => log.broken.has(path));
    log.problems.push(...checked.problems);
    log.warnings.push(...checked.warnings);
  }
  return conclude(plan, flags, settings, log);
}

function ignoredFlags(root: SectionNode): Map<string, string> {
  return new Map([...sectionsOf(root)].flatMap((section) => Object.entries(section.ignoredFlags)));
}

function* givenLeaves(settings: Settings): Generator<[LeafNode, unknown]> {
  for (const [path, { value }] of settings.given())
    yield [settings.leaves.get(path) as LeafNode, value];
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

function readFile(plan: SettingsPlan, settings: Settings, file: ConfigFile, log: Findings): void {
  const reader = openYaml(file.text, {
    file: file.name,
    unknownKeys: "problem",
    knownPaths: settings.leaves.keys(),
    onBroken: (path) => void log.broken.add(path),
  });
  log.isUnreadable = reader.problems.length > 0;
  if (reader.root !== undefined)
    reader.readSection(reader.root, plan.root, ({ path }, value, origin) =>
      settings.give(path, { value, origin }),
    );
  log.problems.push(...reader.problems);
  log.warnings.push(...reader.warnings);
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
