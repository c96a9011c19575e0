import { errorCodeOf } from "@skald/model";
import { type ObjectStore, type S3Options, S3Store } from "@skald/storage";
import { runAuth } from "./auth.js";
import { toJson, toText } from "./document.js";
import { inspectFile } from "./inspect.js";
import { type ProgressOutput, sizeText } from "./progress.js";
import { runCanary, runDoctor } from "./service-commands.js";
import { bucketSource, directorySource, type Source } from "./source.js";
import { type FoundDamage, type Verdict, verify } from "./verify.js";
import { type ErasedVerdict, verifyErased } from "./verify-erased.js";

export interface CommandDeps {
  /** Opens `s3://bucket/prefix` with the flags that the command does not know; throws for flags that nobody knows. */
  readonly openBucket: (
    place: { readonly bucket: string; readonly prefix: string },
    flags: readonly string[],
  ) => Promise<{ readonly store: ObjectStore; readonly close: () => Promise<void> }>;
  readonly stdout: { write(text: string): unknown };
  /** Takes progress, and errors of the command line. */
  readonly stderr: ProgressOutput;
}

const exitCodes = { good: 0, damaged: 1, failed: 2 } as const;
const options = ["streams", "blocks", "json"] as const;
const usage = `Usage: skald inspect FILE... [-streams] [-blocks] [-json]
       skald verify DIR|FILE|s3://bucket/prefix [-json] [flags of the bucket, such as -s3.endpoint, or -config.file]
       skald verify -erased=REQUEST [-query=TEXT] DIR|s3://bucket/prefix... [-json] [flags of the bucket]
       skald canary URL [-help for its options]
       skald doctor URL... [-help for its options]
       skald auth hash|token
`;

/**
 * Runs a command such as `skald inspect` on the output of the process; resolves with the exit code. `bucketOf` turns flags of
 * the server into the options of a bucket, and throws for flags that it cannot understand.
 */
export function runTool(
  argv: readonly string[],
  bucketOf: (flags: readonly string[]) => S3Options,
): Promise<number> {
  const openBucket: CommandDeps["openBucket"] = async ({ bucket, prefix }, flags) => {
    const path = prefix.replace(/\/+$/, "");
    const folder = path === "" ? "" : `${path}/`;
    const store = new S3Store({ ...bucketOf([...flags, `-s3.buckets=${bucket}`]), folder });
    return { store, close: () => store.close() };
  };
  return runCommand(argv, { openBucket, stdout: process.stdout, stderr: process.stderr });
}

/** Runs a command line; resolves with the exit code: 1 for damage, 2 if something could not be checked. */
export async function runCommand(argv: readonly string[], deps: CommandDeps): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "canary") return runCanary(rest, deps);
  if (name === "doctor") return runDoctor(rest, deps);
  if (name === "auth") return runAuth(rest, { stdin: process.stdin, ...deps });
  const isOn = (option: string) => rest.some((one) => one.replace(/^--?/, "-") === `-${option}`);
  const flags = rest.filter((one) => one.startsWith("-") && !options.some((o) => isOption(one, o)));
  const targets = rest.filter((one) => !one.startsWith("-"));
  if (isOn("help") || isOn("h")) {
    deps.stdout.write(usage);
    return exitCodes.good;
  }
  if (name === "verify" && rest.some((one) => isOption(one.split("=")[0]!, "erased")))
    return runErased(rest, deps);
  const isBad = name === "inspect" ? flags.length > 0 : targets.length !== 1;
  if (isBad || targets.length === 0) {
    deps.stderr.write(usage);
    return exitCodes.failed;
  }
  if (name === "inspect") {
    const wanted = { streams: isOn("streams"), blocks: isOn("blocks"), json: isOn("json") };
    return runInspect(targets, wanted, deps);
  }
  try {
    return await runVerify(targets[0]!, flags, isOn("json"), deps);
  } catch (error) {
    deps.stderr.write(`${(error as Error).message.trimEnd()}\n`);
    return exitCodes.failed;
  }
}

function isOption(argument: string, option: string): boolean {
  return argument === `-${option}` || argument === `--${option}`;
}

function runInspect(
  paths: readonly string[],
  wanted: { readonly streams: boolean; readonly blocks: boolean; readonly json: boolean },
  { stdout, stderr }: CommandDeps,
): number {
  let code: number = exitCodes.good;
  for (const path of paths) {
    try {
      const found = inspectFile(path, wanted);
      stdout.write((wanted.json ? toJson : toText)(path, found));
      const { damaged } = found.facts;
      if (typeof damaged === "number" && damaged > 0) code = exitCodes.damaged;
    } catch (error) {
      stderr.write(`${(error as Error).message}\n`);
      const isNewer = errorCodeOf(error) === "newer_version";
      code = Math.max(code, isNewer ? exitCodes.failed : exitCodes.damaged);
    }
  }
  return code;
}

async function runVerify(
  target: string,
  flags: readonly string[],
  isJson: boolean,
  deps: CommandDeps,
): Promise<number> {
  const source = await openSource(target, flags, deps);
  try {
    const verdict = await verify(source, deps.stderr);
    deps.stdout.write(
      isJson ? `${JSON.stringify({ target, ...verdict }, null, 2)}\n` : textOf(verdict),
    );
    if (verdict.damage.length > 0) return exitCodes.damaged;
    return verdict.newer.length > 0 ? exitCodes.failed : exitCodes.good;
  } finally {
    await source.close();
  }
}

/** Proves that nothing of a delete request is left: 1 when something is, 2 when something could not be checked. */
async function runErased(rest: readonly string[], deps: CommandDeps): Promise<number> {
  const values = new Map<string, string>();
  const others: string[] = [];
  for (let i = 0; i < rest.length; i++) {
    const [name = "", ...value] = rest[i]!.split("=");
    const option = ["erased", "query"].find((one) => isOption(name, one));
    if (option === undefined) others.push(rest[i]!);
    else values.set(option, value.length > 0 ? value.join("=") : (rest[++i] ?? ""));
  }
  const isJson = others.some((one) => isOption(one, "json"));
  const flags = others.filter((one) => one.startsWith("-") && !isOption(one, "json"));
  const targets = others.filter((one) => !one.startsWith("-"));
  const id = values.get("erased") ?? "";
  if (targets.length === 0 || id === "") {
    deps.stderr.write(usage);
    return exitCodes.failed;
  }
  const isBucket = (target: string) => target.startsWith("s3://");
  const opened: Source[] = [];
  try {
    if (flags.length > 0 && !targets.some(isBucket))
      throw new Error(`${flags[0]} has no meaning for a directory\n${usage}`);
    for (const target of targets)
      opened.push(await openSource(target, isBucket(target) ? flags : [], deps));
    const verdict = await verifyErased(opened, { id, query: values.get("query") }, deps.stderr);
    deps.stdout.write(
      isJson ? `${JSON.stringify({ targets, ...verdict }, null, 2)}\n` : textOfErased(verdict),
    );
    if (verdict.places.length > 0) return exitCodes.damaged;
    return verdict.unchecked.length > 0 ? exitCodes.failed : exitCodes.good;
  } catch (error) {
    deps.stderr.write(`${(error as Error).message.trimEnd()}\n`);
    return exitCodes.failed;
  } finally {
    for (const source of opened) await source.close();
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
  deps: CommandDeps,
): Promise<Source> {
  const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(target);
  if (match !== null) {
    const [, bucket = "", prefix = ""] = match;
    const { store, close } = await deps.openBucket({ bucket, prefix }, flags);
    return bucketSource(store, close);
  }
  if (flags.length > 0) throw new Error(`${flags[0]} has no meaning for a directory\n${usage}`);
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
