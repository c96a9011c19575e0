import { CommanderError, Command as Parser } from "commander";
import { readCommandLine } from "./shell/arguments.js";
import { exits, Failure, type Io } from "./shell/command.js";
import { commandFirst, findCommand, groups, table } from "./table.js";

/** Runs a command line without the program's name; resolves with the exit code. */
export async function runCommandLine(argv: readonly string[], io: Io): Promise<number> {
  try {
    const words = commandFirst(argv);
    const isHelp = words[0] === "help";
    const found = findCommand(isHelp ? words.slice(1) : words);
    if (found === undefined) return explainCommands(isHelp ? words.slice(1) : words, io);
    const { name, entry, rest } = found;
    const command = await entry.load();
    const readContext = async (context: string | undefined) => {
      const { contextValues } = await import("./client/contexts.js");
      return contextValues(context, io.env);
    };
    const line = { name, command, argv: isHelp ? ["--help"] : rest, readContext };
    const given = await readCommandLine(line, io);
    return typeof given === "number" ? given : await command.run(given, io);
  } catch (error) {
    return tellError(error, io);
  }
}

/** The exit code of an error, which is written to stderr. */
function tellError(error: unknown, { stderr, signal }: Io): number {
  const { code, message, stack } = error as NodeJS.ErrnoException;
  if (code === "EPIPE") return exits.done;
  if (signal.aborted) return exits.interrupted;
  // Commander has written its text.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exits.done : exits.usage;
  if (error instanceof Failure) {
    stderr.write(`${message.trimEnd()}\n`);
    return error.exit;
  }
  // An error of a file or of the network has a code; any other is a fault of the program, and its place helps.
  stderr.write(`${code === undefined ? (stack ?? message) : message}\n`);
  return exits.usage;
}

const serverHelp = `
Without a command, or with a flag first, skald is the server: skald -help lists its flags.
skald help COMMAND tells more about a command.
`;

/** Lists the commands, or those of a group; an unknown word is answered with the command that is meant. */
function explainCommands(words: readonly string[], { stdout, stderr }: Io): number {
  const program = new Parser("skald")
    .usage("[flags of the server]\n       skald COMMAND [arguments]")
    .description("A log store that speaks LogQL, and the commands to use it.")
    .addHelpText("after", serverHelp)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? 110,
    })
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .helpCommand(false);
  const parents = new Map<string, Parser>();
  for (const [name, says] of Object.entries(groups))
    parents.set(name, program.command(name).description(says).usage("COMMAND").helpCommand(false));
  for (const [name, { says }] of Object.entries(table)) {
    const [first = "", second] = name.split(" ");
    const parent = second === undefined ? program : parents.get(first)!;
    parent.command(second ?? first).description(says);
  }
  const [first = "", second] = words.filter((word) => !word.startsWith("-"));
  const group = parents.get(first);
  if (first === "" || (group !== undefined && second === undefined)) {
    stdout.write((group ?? program).helpInformation() + (group === undefined ? serverHelp : ""));
    return first === "" || words.length !== 1 ? exits.done : exits.usage;
  }
  program.parse([first, ...(second === undefined ? [] : [second])], { from: "user" });
  return exits.usage;
}
