import { InvalidArgumentError, Option, Command as Parser } from "commander";
import type { AnyCommand, Flag, Flags, Given, Io } from "./command.js";
import { exits, Failure } from "./command.js";

interface Line {
  readonly name: string;
  readonly command: AnyCommand;
  readonly argv: readonly string[];
  /** The values of the context by names of flags; asked only for commands that have the flag `context`. */
  readonly readContext: (name: string | undefined) => Promise<Readonly<Record<string, string>>>;
}

/**
 * Reads a command line. A flag counts before `SKALD_*`, that before `LOKI_*`, that before the context, and that before the
 * default. An exit code if there is nothing to run, because help was asked for or something is wrong.
 */
export async function readCommandLine(
  { name, command, argv, readContext }: Line,
  io: Io,
): Promise<Given<Flags> | number> {
  const { flags, takesOtherFlags = false } = command;
  const parser = parserOf(name, command, io);
  const words = spellOut(argv, flags);
  const isOther = (word: string) => takesOtherFlags && !isKnown(word, flags);
  parser.parse(
    words.filter((word) => !isOther(word)),
    { from: "user" },
  );
  if (argv.some((one) => one === "--help" || one === "-h")) return exits.done;
  const find = (flag: string, context: Readonly<Record<string, string>>) =>
    givenValue(parser, flag) ?? textValue(flag, flags[flag]!, io.env, context);
  const named = "context" in flags ? (find("context", {}) as string | undefined) : undefined;
  const context = "context" in flags ? await readContext(named) : {};
  const values: Record<string, unknown> = {};
  const set = new Set<string>();
  for (const [flag, declared] of Object.entries(flags)) {
    const found = find(flag, context);
    if (found !== undefined) set.add(flag);
    values[flag] = found ?? declared.value;
  }
  return {
    args: parser.args,
    rest: words.filter(isOther),
    flags: values,
    isSet: (flag) => set.has(flag),
  };
}

function parserOf(name: string, { args, says, flags }: AnyCommand, io: Io) {
  const parser = new Parser()
    .name(`skald ${name}`)
    .description(says)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? 110,
    })
    .helpOption("-h, --help", "shows this help");
  for (const one of args.split(" ").filter(Boolean)) parser.argument(one);
  for (const [flag, declared] of Object.entries(flags)) parser.addOption(optionOf(flag, declared));
  return parser;
}

function optionOf(name: string, { kind, says, value, short, env, choices, shown }: Flag): Option {
  const word = shown ?? (kind === "number" ? "N" : "VALUE");
  const takes = kind === "boolean" ? "" : ` <${word}>`;
  const usual = kind === "list" || kind === "boolean" || value === "" ? "" : `; default: ${value}`;
  const variable = env === undefined ? "" : ` [SKALD_${env}]`;
  const option = new Option(
    `${short === undefined ? "" : `-${short}, `}--${name}${takes}`,
    `${says}${usual}${variable}`,
  );
  if (env !== undefined) option.helpGroup("Connection:");
  if (choices !== undefined) option.choices(choices);
  if (kind === "number")
    option.argParser((text) => {
      const number = Number(text);
      if (text === "" || !Number.isFinite(number)) throw new InvalidArgumentError("Not a number.");
      return number;
    });
  if (kind === "list")
    option.argParser((text, before: readonly string[] | undefined) => [...(before ?? []), text]);
  return option;
}

/** The value that the command line has for a flag; undefined if it does not name the flag. */
function givenValue(parser: Parser, flag: string): unknown {
  const option = parser.options.find(({ long }) => long === `--${flag}`);
  if (option === undefined) return undefined;
  const name = option.attributeName();
  if (parser.getOptionValueSource(name) !== "cli") return undefined;
  return option.negate ? parser.getOptionValue(name) === false : parser.getOptionValue(name);
}

/** The value that the environment, or else the context, has for a flag. */
function textValue(
  name: string,
  { kind, env: variable }: Flag,
  env: Io["env"],
  context: Readonly<Record<string, string>>,
): unknown {
  const named = variable === undefined ? [] : [`SKALD_${variable}`, `LOKI_${variable}`];
  const source = named.find((one) => (env[one] ?? "") !== "");
  const text = source === undefined ? context[name] : env[source];
  if (text === undefined) return undefined;
  const where = source ?? `the context's ${name}`;
  switch (kind) {
    case "text":
      return text;
    case "list":
      return text.split("\n");
    case "boolean":
      return !/^(false|0|no|off)$/i.test(text);
    case "number":
      if (Number.isFinite(Number(text))) return Number(text);
      throw new Failure("usage", `${where}: ${text} is not a number`);
  }
}

/** Whether a word is an argument, or a flag that is declared. */
function isKnown(word: string, flags: Flags): boolean {
  const [, name] = /^--?([\w.-]+)/.exec(word) ?? [];
  if (name === undefined || Object.hasOwn(flags, name) || name === "help") return true;
  return name === "h" || Object.values(flags).some(({ short }) => short === name);
}

/**
 * Flags with two dashes: `-json` is Go's way to write `--json`. `--no-forward`, where there is a flag `forward` and the
 * other is none, is the default, and left out.
 */
function spellOut(argv: readonly string[], flags: Flags): string[] {
  const end = argv.indexOf("--");
  const until = end < 0 ? argv.length : end;
  return argv.flatMap((word, i) => {
    const [, dashes, name = ""] = /^(--?)([\w-]+)/.exec(word) ?? [];
    if (i >= until || dashes === undefined) return [word];
    if (isKnown(word, flags)) return dashes === "-" && name.length > 1 ? [`-${word}`] : [word];
    const isOff = name.startsWith("no-") && flags[name.slice(3)]?.kind === "boolean";
    return isOff ? [] : [word];
  });
}
