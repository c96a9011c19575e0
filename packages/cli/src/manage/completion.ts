import { type AnyCommand, command, exits, Failure } from "../shell/command.js";

type Table = Readonly<
  Record<string, { readonly says: string; readonly load: () => Promise<AnyCommand> }>
>;

/** The command that writes a script that completes the commands of the table, and their flags. */
export function completionOf(table: Table): AnyCommand {
  return command({
    args: "<shell>",
    says: 'Writes a script for a shell: bash, zsh or fish. Put eval "$(skald completion bash)" into ~/.bashrc, the same with zsh into ~/.zshrc, or skald completion fish | source into config.fish.',
    flags: {},
    run: async ({ args: [shell = ""] }, { stdout }) => {
      const write = scripts[shell];
      if (write === undefined)
        throw new Failure(
          "usage",
          `there is no completion for ${shell}; there is: bash, zsh, fish`,
        );
      const offers = Object.entries(table).map(async ([name, { says, load }]): Promise<Offer> => {
        const { flags } = await load();
        return { name, says, flags: Object.keys(flags).map((flag) => `--${flag}`) };
      });
      stdout.write(write(await Promise.all(offers)));
      return exits.done;
    },
  });
}

interface Offer {
  readonly name: string;
  readonly says: string;
  readonly flags: readonly string[];
}

const scripts: Readonly<Record<string, (commands: readonly Offer[]) => string>> = {
  bash: (commands) => `${wordFunction(commands)}
_skald() {
  COMPREPLY=($(compgen -W "$(_skald_words "\${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _skald skald
`,
  zsh: (commands) => `${wordFunction(commands)}
_skald() {
  local found=(\${=$(_skald_words "\${words[@]:1:$((CURRENT - 2))}")})
  compadd -a found || _files
}
compdef _skald skald
`,
  fish: (commands) => {
    const lines = commands.flatMap(({ name, says, flags }) => {
      const [first = "", second] = name.split(" ");
      const at =
        second === undefined ? "__fish_use_subcommand" : `'__fish_seen_subcommand_from ${first}'`;
      const word = `complete -c skald -f -n ${at} -a ${second ?? first} -d '${says}'`;
      return [
        ...(second === undefined
          ? []
          : [`complete -c skald -f -n __fish_use_subcommand -a ${first}`]),
        word,
        ...flags.map(
          (flag) =>
            `complete -c skald -n '__fish_seen_subcommand_from ${second ?? first}' -l ${flag.slice(2)}`,
        ),
      ];
    });
    return `${[...new Set(lines)].join("\n")}\n`;
  },
};

/** A function of the shell that writes what may follow the words of a command line. */
function wordFunction(commands: readonly Offer[]): string {
  const firsts = new Set(commands.map(({ name }) => name.split(" ")[0]!));
  const groups = [...firsts].flatMap((first) => {
    const seconds = commands.filter(({ name }) => name.startsWith(`${first} `));
    const words = seconds.map(({ name }) => name.slice(first.length + 1)).join(" ");
    return words === "" ? [] : [`    ${first}) echo "${words}" ;;`];
  });
  const cases = commands.map(({ name, flags }) => `    "${name}"*) echo "${flags.join(" ")}" ;;`);
  return `_skald_words() {
  case "$*" in
    "") echo "help ${[...firsts].join(" ")}" ;;
${[...groups, ...cases].join("\n")}
  esac
}`;
}
