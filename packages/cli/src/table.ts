import { askFlags, sourceFlags } from "./client/flags.js";
import type { AnyCommand, Flags } from "./shell/command.js";

interface Entry {
  /** One line of `skald help`. */
  readonly says: string;
  /** Other names, mostly those of logcli. */
  readonly also?: readonly string[];
  /** Loads the command: `skald help` needs none of them. */
  readonly load: () => Promise<AnyCommand>;
}

/** All commands by name; two words are a command of a group. */
export const table: Readonly<Record<string, Entry>> = {
  query: {
    says: "runs a query over a range of time, or at one",
    load: async () => (await import("./ask/query.js")).query,
  },
  tail: {
    says: "shows the last lines and goes on with new ones",
    load: async () => (await import("./ask/query.js")).tailCommand,
  },
  "instant-query": {
    says: "runs a metric query at one time, as query --at",
    load: async () => (await import("./ask/query.js")).instantQuery,
  },
  labels: {
    says: "lists names of labels, or the values of one",
    load: async () => (await import("./ask/lists.js")).labels,
  },
  series: {
    says: "lists streams",
    load: async () => (await import("./ask/lists.js")).series,
  },
  fields: {
    says: "lists the fields of lines, or the values of one",
    also: ["detected-fields"],
    load: async () => (await import("./ask/lists.js")).fields,
  },
  patterns: {
    says: "lists patterns of lines",
    load: async () => (await import("./ask/lists.js")).patterns,
  },
  stats: {
    says: "tells how much there is of a selector",
    load: async () => (await import("./ask/lists.js")).stats,
  },
  volume: {
    says: "tells which streams have the most bytes",
    load: async () => (await import("./ask/lists.js")).volume,
  },
  volume_range: {
    says: "tells the bytes of streams at each step",
    load: async () => (await import("./ask/lists.js")).volumeRange,
  },
  explain: {
    says: "tells what a query would read, without running it",
    load: async () => (await import("./ask/explain.js")).explain,
  },
  fmt: {
    says: "formats queries, and shows their mistakes",
    load: async () => (await import("./ask/fmt.js")).fmt,
  },
  push: {
    says: "stores lines of files or of stdin",
    load: async () => (await import("./move/push.js")).push,
  },
  export: {
    says: "writes all lines of a query to a file",
    load: async () => (await import("./move/export.js")).exportLines,
  },
  "import loki": {
    says: "copies lines from a running Loki or Skald, and compares the counts",
    also: ["import"],
    load: async () => (await import("./move/import.js")).importLines,
  },
  "import loki-store": {
    says: "copies the object store of a Loki into the store of a Skald",
    load: async () => (await import("./move/import-store.js")).importStore,
  },
  "rules check": {
    says: "checks files of rules",
    load: async () => (await import("./manage/rules.js")).rulesCheck,
  },
  "rules test": {
    says: "runs rules over lines that a file has, and compares what comes out",
    load: async () => (await import("./manage/rules-test.js")).rulesTest,
  },
  "rules diff": {
    says: "shows how the server's rules differ from files",
    load: async () => (await import("./manage/rules.js")).rulesDiff,
  },
  "rules sync": {
    says: "makes the server's rules those of files",
    load: async () => (await import("./manage/rules.js")).rulesSync,
  },
  bench: {
    says: "pushes made-up lines to a server, asks for them, and shows the times",
    load: async () => (await import("./service/bench.js")).bench,
  },
  "delete add": {
    says: "shows which lines would go, asks, and has them deleted",
    load: async () => (await import("./manage/deletes.js")).deleteAdd,
  },
  "delete create": {
    says: "the same without a question",
    load: async () => (await import("./manage/deletes.js")).deleteCreate,
  },
  "delete list": {
    says: "lists requests to delete lines",
    load: async () => (await import("./manage/deletes.js")).deleteList,
  },
  "delete cancel": {
    says: "takes a request back",
    load: async () => (await import("./manage/deletes.js")).deleteCancel,
  },
  "context add": {
    says: "adds a connection under a name",
    load: async () => (await import("./manage/contexts.js")).contextAdd,
  },
  "context use": {
    says: "makes a context the one that commands use",
    load: async () => (await import("./manage/contexts.js")).contextUse,
  },
  "context list": {
    says: "lists the contexts",
    load: async () => (await import("./manage/contexts.js")).contextList,
  },
  "context show": {
    says: "shows a context",
    load: async () => (await import("./manage/contexts.js")).contextShow,
  },
  "context rm": {
    says: "removes a context",
    load: async () => (await import("./manage/contexts.js")).contextRemove,
  },
  "auth hash": {
    says: "hashes a password for the users file",
    load: async () => (await import("./manage/auth.js")).authHash,
  },
  "auth token": {
    says: "makes a token for the users file",
    load: async () => (await import("./manage/auth.js")).authToken,
  },
  "config check": {
    says: "checks a configuration of the server",
    load: async () => (await import("./manage/config.js")).configCheck,
  },
  completion: {
    says: "writes a script that completes commands in a shell",
    load: async () => (await import("./manage/completion.js")).completionOf(table),
  },
  inspect: {
    says: "shows what is inside a segment, log, day index or other file",
    load: async () => (await import("./check/commands.js")).inspect,
  },
  verify: {
    says: "checks every checksum of a folder or a bucket, or that nothing of a delete request is left",
    load: async () => (await import("./check/commands.js")).verifyStore,
  },
  canary: {
    says: "pushes numbered lines, reads them back, and counts what is wrong",
    load: async () => (await import("./service/commands.js")).canary,
  },
  doctor: {
    says: "asks services for what hurts and what will",
    load: async () => (await import("./service/commands.js")).doctor,
  },
};

/** What the commands of two words have in common, by their first word. */
export const groups: Readonly<Record<string, string>> = {
  rules: "checks files of rules, and brings them to a server",
  delete: "has lines deleted",
  context: "names connections to servers",
  import: "copies lines from a Loki",
  auth: "makes entries of the users file",
  config: "checks a configuration of the server",
};

const aliases: ReadonlyMap<string, string> = new Map(
  Object.entries(table).flatMap(([name, { also = [] }]) => also.map((other) => [other, name])),
);

/** The command at the start of the words, and the words after it; undefined if there is none. */
export function findCommand(words: readonly string[]) {
  for (const count of [2, 1]) {
    const wanted = words.slice(0, count).join(" ");
    const name = Object.hasOwn(table, wanted) ? wanted : aliases.get(wanted);
    if (name !== undefined) return { name, entry: table[name]!, rest: words.slice(count) };
  }
  return undefined;
}

/** Whether a command line is one of a command; flags that logcli takes may come before it. All others are the server's. */
export function isCommandLine(argv: readonly string[]): boolean {
  const [first] = argv;
  if (first === undefined) return false;
  if (!first.startsWith("-") || first === "--help" || first === "-h") return true;
  const at = countLeading(argv);
  return at > 0 && findCommand(argv.slice(at)) !== undefined;
}

/** The words with the command first: `--addr URL query '{}'` is `query --addr URL '{}'`. */
export function commandFirst(argv: readonly string[]): readonly string[] {
  const at = countLeading(argv);
  const found = at === 0 ? undefined : findCommand(argv.slice(at));
  if (found === undefined) return argv;
  const words = argv.slice(at, argv.length - found.rest.length);
  return [...words, ...argv.slice(0, at), ...found.rest];
}

const leadingFlags: Flags = { ...askFlags, ...sourceFlags };

/** How many words at the start are flags that may come before a command, and their values; 0 if another flag is among them. */
function countLeading(argv: readonly string[]): number {
  let at = 0;
  while (at < argv.length && argv[at]!.startsWith("-")) {
    const [, name = "", value] = /^--?([\w-]+)(=.*)?$/s.exec(argv[at]!) ?? [];
    const found =
      leadingFlags[name] ?? Object.values(leadingFlags).find(({ short }) => short === name);
    if (found === undefined) return 0;
    at += found.kind === "boolean" || value !== undefined ? 1 : 2;
  }
  return at;
}
