import { contextKeys, contextsPath, readContexts, writeContexts } from "../client/contexts.js";
import { alignRows } from "../output/cells.js";
import { type AnyCommand, command, exits, Failure, type Flags, flag } from "../shell/command.js";

const values: Flags = Object.fromEntries(
  contextKeys.map((key) => [key, flag.text(`the value of ${key}`)]),
);

export const contextAdd: AnyCommand = command({
  args: "<name>",
  says: "Adds a connection, or changes it, and uses it if it is the first. A password or a token is named by a file or a variable, and never stored.",
  flags: values,
  run: async ({ args: [name = ""], flags, isSet }, { env, stderr }) => {
    const { current, contexts } = readContexts(env);
    const given = Object.entries(flags).filter(([key]) => isSet(key)) as [string, string][];
    if (given.length === 0)
      throw new Failure("usage", "give what is special about it, such as --addr URL");
    const changed = { ...contexts[name], ...Object.fromEntries(given) };
    writeContexts(env, { current: current ?? name, contexts: { ...contexts, [name]: changed } });
    stderr.write(`${name} is in ${contextsPath(env)}\n`);
    return exits.done;
  },
});

export const contextUse: AnyCommand = command({
  args: "<name>",
  says: "Makes a context the one that commands use.",
  flags: {},
  run: async ({ args: [name = ""] }, { env }) => {
    const { contexts } = readContexts(env);
    writeContexts(env, { current: known(contexts, name), contexts });
    return exits.done;
  },
});

export const contextList: AnyCommand = command({
  args: "",
  says: "Lists the contexts; the star is at the one that commands use.",
  flags: {},
  run: async (_given, { env, stdout }) => {
    const { current, contexts } = readContexts(env);
    const rows = Object.entries(contexts).map(([name, one]) => [
      ...[name === current ? "*" : "", name, one.addr ?? "", one["org-id"] ?? ""],
    ]);
    if (rows.length > 0) stdout.write(alignRows(["", "name", "address", "tenant"], rows));
    return exits.done;
  },
});

export const contextShow: AnyCommand = command({
  args: "[name]",
  says: "Shows a context, or the one that commands use.",
  flags: {},
  run: async ({ args: [name] }, { env, stdout }) => {
    const { current, contexts } = readContexts(env);
    const one = contexts[known(contexts, name ?? current ?? "")]!;
    stdout.write(
      Object.entries(one)
        .map(([key, value]) => `${key}: ${value}\n`)
        .join(""),
    );
    return exits.done;
  },
});

export const contextRemove: AnyCommand = command({
  args: "<name>",
  says: "Removes a context.",
  flags: {},
  run: async ({ args: [name = ""] }, { env }) => {
    const { current, contexts } = readContexts(env);
    const { [known(contexts, name)]: _, ...left } = contexts;
    writeContexts(env, { current: current === name ? undefined : current, contexts: left });
    return exits.done;
  },
});

function known(contexts: object, name: string): string {
  if (Object.hasOwn(contexts, name)) return name;
  const all = Object.keys(contexts).join(", ") || "none";
  throw new Failure("usage", `there is no context ${name || "in use"}; there are: ${all}`);
}
