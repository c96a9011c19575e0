import { type AnyCommand, command, exits } from "../shell/command.js";

export const configCheck: AnyCommand = command({
  args: "[file]",
  says: "Checks a configuration of the server, with the flags that are given, as the server would at its start. The exit code is 1 if it is wrong.",
  flags: {},
  takesOtherFlags: true,
  run: async ({ args: [file], rest }, { host, stdout, stderr }) => {
    const named = file === undefined ? [] : [`-config.file=${file}`];
    const { error, warnings } = await host.checkConfig([...named, ...rest]);
    for (const warning of warnings) stderr.write(`warning: ${warning}\n`);
    if (error === undefined) {
      stdout.write(`${file ?? "the configuration"} is good\n`);
      return exits.done;
    }
    stderr.write(error);
    return exits.found;
  },
});
