import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { checkGroups, plainGroup, type RuleGroup, readGroups } from "@skald/ruler/texts";
import { parse, stringify } from "yaml";
import { Client } from "../client/client.js";
import { connectionFlags, connectionOf } from "../client/settings.js";
import { type AnyCommand, command, exits, Failure, flag } from "../shell/command.js";

const formText =
  "A file has Loki's form: groups, and optionally a namespace, which is else the name of the file.";

export const rulesCheck: AnyCommand = command({
  args: "<files...>",
  says: `Checks files of rules, without a server; the exit code is 1 if one is wrong. ${formText}`,
  flags: {},
  run: async ({ args }, { stdout, stderr }) => {
    let bad = 0;
    for (const path of args) {
      try {
        const { groups } = readRules(path);
        const rules = groups.reduce((sum, { rules: own }) => sum + own.length, 0);
        stdout.write(`${path}: ${groups.length} groups, ${rules} rules, all good\n`);
      } catch (error) {
        if (!(error instanceof BadRules)) throw error;
        bad++;
        for (const problem of error.problems) stderr.write(`${path}: ${problem}\n`);
      }
    }
    return bad > 0 ? exits.found : exits.done;
  },
});

export const rulesDiff: AnyCommand = command({
  args: "<files...>",
  says: `Shows what rules sync would change: + is new, - goes, ~ is another. The exit code is 1 if something differs. ${formText}`,
  flags: connectionFlags,
  run: async ({ args, flags }, io) => {
    const client = new Client(connectionOf(flags, io.env), io.signal);
    const changes = await changesOf(client, args);
    for (const change of changes) io.stdout.write(lineOf(change));
    return changes.length > 0 ? exits.found : exits.done;
  },
});

export const rulesSync: AnyCommand = command({
  args: "<files...>",
  says: `Makes the groups of the server's namespaces those of the files. Namespaces that no file has stay as they are. ${formText}`,
  flags: {
    ...connectionFlags,
    "dry-run": flag.boolean("changes nothing, and shows what would be changed"),
  },
  run: async ({ args, flags }, io) => {
    const client = new Client(connectionOf(flags, io.env), io.signal);
    for (const change of await changesOf(client, args)) {
      io.stdout.write(lineOf(change));
      if (flags["dry-run"]) continue;
      const path = `/loki/api/v1/rules/${encodeURIComponent(change.namespace)}`;
      if (change.kind === "gone")
        await client.call(`${path}/${encodeURIComponent(change.name)}`, { method: "DELETE" });
      else
        await client.call(path, {
          ...{ method: "POST", body: stringify(change.group) },
          headers: { "content-type": "application/yaml" },
        });
    }
    return exits.done;
  },
});

class BadRules extends Failure {
  readonly problems: readonly string[];

  constructor(path: string, problems: readonly string[]) {
    super("usage", problems.map((one) => `${path}: ${one}`).join("\n"));
    this.problems = problems;
  }
}

export interface RuleFile {
  readonly namespace: string;
  readonly groups: readonly RuleGroup[];
}

/** Reads a file of rules; throws what is wrong with it. */
export function readRules(path: string): RuleFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Failure("usage", (error as Error).message);
  }
  try {
    const groups = readGroups(text);
    const { namespace } = (parse(text) ?? {}) as { namespace?: string };
    const problems = checkGroups(groups);
    if (groups.length === 0) problems.push("it has no groups");
    if (problems.length > 0) throw new BadRules(path, problems);
    return { namespace: namespace ?? basename(path).replace(/\.ya?ml$/, ""), groups };
  } catch (error) {
    if (error instanceof BadRules) throw error;
    throw new BadRules(path, [(error as Error).message]);
  }
}

interface Change {
  readonly kind: "new" | "gone" | "other";
  readonly namespace: string;
  readonly name: string;
  /** What is to be stored; of a group that goes, what is stored. */
  readonly group: Record<string, unknown>;
}

/** What the files change at the server, by namespace and name. */
async function changesOf(client: Client, paths: readonly string[]): Promise<Change[]> {
  const wanted = new Map<string, Map<string, Record<string, unknown>>>();
  for (const { namespace, groups } of paths.map(readRules)) {
    const named = wanted.get(namespace) ?? new Map();
    for (const group of groups) named.set(group.name, plainGroup(group));
    wanted.set(namespace, named);
  }
  const stored = await storedGroups(client);
  const changes: Change[] = [];
  for (const [namespace, groups] of wanted) {
    const known = stored.get(namespace) ?? new Map<string, Record<string, unknown>>();
    for (const [name, group] of groups) {
      const before = known.get(name);
      if (before === undefined) changes.push({ kind: "new", namespace, name, group });
      else if (JSON.stringify(before) !== JSON.stringify(group))
        changes.push({ kind: "other", namespace, name, group });
    }
    for (const [name, group] of known)
      if (!groups.has(name)) changes.push({ kind: "gone", namespace, name, group });
  }
  return changes;
}

/** The groups of the server as `plainGroup` writes them. */
async function storedGroups(client: Client) {
  let text = "";
  try {
    text = await (await client.call("/loki/api/v1/rules")).text();
  } catch (error) {
    // A tenant without rules.
    if (!(error instanceof Failure) || !error.message.includes("answered 404")) throw error;
  }
  const found = (parse(text) ?? {}) as Record<string, unknown[]>;
  return new Map(
    Object.entries(found).map(([namespace, groups]) => {
      const plain = readGroups(stringify({ groups })).map(plainGroup);
      return [namespace, new Map(plain.map((group) => [String(group.name), group]))] as const;
    }),
  );
}

const signs = { new: "+", gone: "-", other: "~" } as const;

function lineOf({ kind, namespace, name, group }: Change): string {
  return `${signs[kind]} ${namespace}/${name} (${(group.rules as unknown[]).length} rules)\n`;
}
