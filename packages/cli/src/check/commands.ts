import { errorCodeOf } from "@skald/model";
import { command, exits, flag, type Io } from "../shell/command.js";
import { sizeText } from "../shell/progress.js";
import { toJson, toText } from "./document.js";
import { inspectFile } from "./inspect.js";
import { bucketSource, directorySource, type Source } from "./source.js";
import { type FoundDamage, type Verdict, verify } from "./verify.js";
import { type ErasedVerdict, verifyErased } from "./verify-erased.js";

export const inspect = command({
  args: "<files...>",
  says: "Shows what is inside a segment, log, day index or other file. The exit code is 1 for damage, and 2 if a file is newer than the program.",
  flags: {
    streams: flag.boolean("lists streams"),
    blocks: flag.boolean("lists blocks"),
    json: flag.boolean("writes JSON"),
  },
  run: async ({ args, flags }, io) => runInspect(args, flags, io),
});

export const verifyStore = command({
  args: "<sources...>",
  says: "Checks every checksum of a folder, a file, or a bucket. With --erased it looks for what a delete request names, in all sources together: give the data folder and the bucket. Flags of the server's bucket, such as -s3.endpoint=URL or -config.file=FILE, say how to reach it. The exit code is 1 for damage or for what is left, and 2 if something could not be checked.",
  flags: {
    erased: flag.text("the id of a delete request"),
    query: flag.text("its query, where that was taken out of it"),
    json: flag.boolean("writes JSON"),
  },
  takesOtherFlags: true,
  run: async ({ args, flags, rest }, io) => {
    try {
      if (flags.erased !== "") return await runErased(args, rest, flags, io);
      if (args.length > 1) throw new Error("verify takes one source");
      return await runVerify(args[0]!, rest, flags.json, io);
    } catch (error) {
      io.stderr.write(`${(error as Error).message.trimEnd()}\n`);
      return exits.usage;
    }
  },
});

function runInspect(
  paths: readonly string[],
  wanted: { readonly streams: boolean; readonly blocks: boolean; readonly json: boolean },
  { stdout, stderr }: Io,
): number {
  let code: number = exits.done;
  for (const path of paths) {
    try {
      const found = inspectFile(path, wanted);
      stdout.write((wanted.json ? toJson : toText)(path, found));
      const { damaged } = found.facts;
      if (typeof damaged === "number" && damaged > 0) code = exits.found;
    } catch (error) {
      stderr.write(`${(error as Error).message}\n`);
      const isNewer = errorCodeOf(error) === "newer_version";
      code = Math.max(code, isNewer ? exits.usage : exits.found);
    }
  }
  return code;
}

async function runVerify(
  target: string,
  flags: readonly string[],
  isJson: boolean,
  { stdout, stderr, host }: Io,
): Promise<number> {
  const source = await openSource(target, flags, host);
  try {
    const verdict = await verify(source, stderr);
    stdout.write(isJson ? `${JSON.stringify({ target, ...verdict }, null, 2)}\n` : textOf(verdict));
    if (verdict.damage.length > 0) return exits.found;
    return verdict.newer.length > 0 ? exits.usage : exits.done;
  } finally {
    await source.close();
  }
}

/** Proves that nothing of a delete request is left. */
async function runErased(
  targets: readonly string[],
  bucketFlags: readonly string[],
  flags: { readonly erased: string; readonly query: string; readonly json: boolean },
  { stdout, stderr, host }: Io,
): Promise<number> {
  const isBucket = (target: string) => target.startsWith("s3://");
  if (bucketFlags.length > 0 && !targets.some(isBucket))
    throw new Error(`${bucketFlags[0]} has no meaning for a directory`);
  const sources: Source[] = [];
  try {
    for (const target of targets)
      sources.push(await openSource(target, isBucket(target) ? bucketFlags : [], host));
    const asked = { id: flags.erased, query: flags.query === "" ? undefined : flags.query };
    const verdict = await verifyErased(sources, asked, stderr);
    stdout.write(
      flags.json ? `${JSON.stringify({ targets, ...verdict }, null, 2)}\n` : textOfErased(verdict),
    );
    if (verdict.places.length > 0) return exits.found;
    return verdict.unchecked.length > 0 ? exits.usage : exits.done;
  } finally {
    for (const source of sources) await source.close();
  }
}

function textOfErased({ checkedFiles, notes, places, query, request, ...rest }: ErasedVerdict) {
  const lines = [
    `delete request ${request} of tenant ${rest.tenant}: ${query}`,
    ...places.map(({ file, message }) => `left: ${file}: ${message}`),
    ...rest.unchecked.map((one) => `not checked: ${one}`),
    ...notes.map((note) => `note: ${note}`),
    `checked ${checkedFiles} files`,
    places.length === 0 ? "nothing of it is left" : `it is left in ${places.length} places`,
  ];
  return `${lines.join("\n")}\n`;
}

async function openSource(
  target: string,
  flags: readonly string[],
  host: Io["host"],
): Promise<Source> {
  const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(target);
  if (match !== null) {
    const [, bucket = "", prefix = ""] = match;
    const { store, close } = await host.openBucket({ bucket, prefix }, flags);
    return bucketSource(store, close);
  }
  if (flags.length > 0) throw new Error(`${flags[0]} has no meaning for a directory`);
  return directorySource(target);
}

function textOf({ checked, others, bytes, damage, newer, notes }: Verdict): string {
  const kinds = Object.entries(checked).map(([kind, count]) => `${count} x ${kind}`);
  const rest = others === 0 ? "" : `, ${others} other files not looked at`;
  const lines = [
    ...damage.map(lineOf),
    ...newer.map(({ message }) => `newer: ${message}`),
    ...notes.map((note) => `note: ${note}`),
    `checked ${kinds.join(", ") || "nothing"} (${sizeText(bytes)})${rest}`,
    damage.length === 0 ? "nothing is damaged" : `${damage.length} things are damaged`,
  ];
  return `${lines.join("\n")}\n`;
}

function lineOf({ file, part, offset, message }: FoundDamage): string {
  return `damaged: ${file}: ${part}${offset === undefined ? "" : ` at byte ${offset}`}: ${message}`;
}
