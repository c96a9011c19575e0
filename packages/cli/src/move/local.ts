import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { parseQuery } from "@skald/logql/syntax";
import type { TimeRange } from "@skald/model";
import { Client } from "../client/client.js";
import type { askFlags, sourceFlags } from "../client/flags.js";
import { Session } from "../client/session.js";
import { connectionOf } from "../client/settings.js";
import { Failure, type Flags, type Given, type Io, type Values } from "../shell/command.js";
import { LineSource } from "./line-source.js";
import { Places, Pusher } from "./pusher.js";
import { readFileLines, readLines } from "./read-lines.js";

type AskFlags = Omit<Values<typeof askFlags>, "output">;
type SourceFlags = Values<typeof sourceFlags>;

/** What a command asks, and how. */
export interface Ask<F> {
  readonly flags: F;
  /** A query or a selector; undefined for commands without one. */
  readonly query: string | undefined;
}

/**
 * Runs a command with a session on what its flags name: a server, or plain files, stdin, or segments. These are read by a
 * server that lives in this process for as long as the command.
 */
export async function withSession<F extends AskFlags & SourceFlags>(
  { flags, isSet }: { readonly flags: F; isSet(name: string): boolean },
  query: string | undefined,
  io: Io,
  run: (session: Session, ask: Ask<F>) => Promise<number>,
): Promise<number> {
  const { dir, files, stdin } = flags;
  const named = [dir !== "", files.length > 0, stdin].filter(Boolean).length;
  if (named === 0) return run(new Session(flags, io), { flags, query });
  if (named > 1) throw new Failure("usage", "give one of --dir, --files and --stdin");
  const special =
    dir === ""
      ? [...lineServer, "-auth.enabled=false"]
      : dirServer(dir, flags["org-id"], flags["dir-flag"]);
  return withServer(special, io, async (server) => {
    const here = { ...flags, ...noConnection, addr: server.url };
    if (dir !== "") {
      const tenant = flags["org-id"] || onlyTenant(dir);
      return await run(new Session({ ...here, "org-id": tenant }, io), { flags: here, query });
    }
    const text = query === undefined ? undefined : wholeQuery(query);
    const range = await storeLines(server.url, { ...flags, labels: labelsOf(text) }, io);
    return await run(new Session(here, io), {
      flags: {
        ...here,
        ...wholeRange(range, isSet),
        ...("forward" in here ? allLines(isSet) : {}),
      },
      query: text,
    });
  });
}

/** Runs a command with a server of this process that has these flags and an empty folder. */
export async function withServer<T>(
  flags: readonly string[],
  io: Io,
  run: (server: { readonly url: string }) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "skald-local-"));
  const common = [
    ...["-server.http-listen-address=127.0.0.1", "-server.http-listen-port=0"],
    ...["-server.grpc-listen-port=0", "-server.worker-threads=1", "-store.max-query-length=0"],
    `-common.path-prefix=${folder}`,
  ];
  const server = await io.host.startServer([...common, ...flags]).catch((error: Error) => {
    throw new Failure("usage", error.message, { cause: error });
  });
  try {
    return await run(server);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A server of this process needs nothing of what leads to another. */
export const noConnection = {
  ...{ "org-id": "", username: "", password: "", "bearer-token": "", "bearer-token-file": "" },
  ...{
    "ca-cert": "",
    cert: "",
    key: "",
    "tls-skip-verify": false,
    "proxy-url": "",
    envproxy: false,
  },
} as const;

/** Flags of a server that takes any line, of any time. */
export const lineServer = [
  ...["-target=ingester,distributor,querier", "-ingester.wal-enabled=false"],
  ...["-validation.reject-old-samples=false", "-validation.create-grace-period=876000h"],
  ...["-distributor.max-line-size=0", "-ingester.flush-on-shutdown=false"],
  "-validation.discover-service-name=",
];

/** Flags of a server that reads a store, and has no part that would change it. */
function dirServer(dir: string, tenant: string, more: readonly string[]): string[] {
  const target = [
    "-target=ingester,querier",
    "-auth.enabled=true",
    "-querier.multi-tenant-queries-enabled=true",
    "-ingester.flush-on-shutdown=false",
  ];
  const bucket = /^s3:\/\/([^/]+)\/?(.*)$/.exec(dir);
  if (bucket !== null) {
    const [, name, prefix = ""] = bucket;
    const folder = prefix.replace(/\/+$/, "");
    const place = [`-s3.buckets=${name}`, ...(folder && [`-store.object-prefix=${folder}`])];
    return [...target, ...place, ...more];
  }
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Failure("usage", `--dir: ${dir} is no folder`);
  if (tenant === "") onlyTenant(dir);
  return [...target, `-common.storage.filesystem.chunk-directory=${resolve(dir)}`, ...more];
}

/** The tenant of a folder that has one only. */
function onlyTenant(dir: string): string {
  if (dir.startsWith("s3://")) throw new Failure("usage", "name the tenant: --org-id");
  const found = readdirSync(dir).flatMap((name) => /^tenant=(.+)$/.exec(name)?.[1] ?? []);
  const [tenant, ...others] = found.map(decodeURIComponent);
  if (tenant === undefined)
    throw new Failure("usage", `--dir: ${dir} has no segments: there is no folder tenant=...`);
  if (others.length > 0)
    throw new Failure("usage", `name the tenant: --org-id ${[tenant, ...others].join(", or ")}`);
  return tenant;
}

interface Lines extends SourceFlags {
  readonly labels: Readonly<Record<string, string>>;
}

/** Stores the lines of files or stdin in a server; the times that they have. */
async function storeLines(
  url: string,
  { files, stdin, labels, ...flags }: Lines,
  io: Io,
): Promise<TimeRange | undefined> {
  const connection = connectionOf(
    { ...(flags as never as AskFlags), ...noConnection, addr: url },
    {},
  );
  const pushFlags = { "batch-size": 4 * 1024 * 1024, "batch-wait": "1m", retries: 0, quiet: true };
  const places = new Places("");
  const pusher = new Pusher(new Client(connection, io.signal), { flags: pushFlags, io, places });
  const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const options = {
    format: "auto",
    label,
    "label-from": [],
    "metadata-from": [],
    "time-field": "",
  };
  const ranges: TimeRange[] = [];
  const paths = stdin ? ["stdin"] : files.flatMap(expand);
  for (const path of paths) {
    const source = new LineSource(options, { filename: path });
    const input = stdin ? readLines(io.stdin) : readFileLines(path, 0);
    for await (const lines of input) await pusher.add(source, lines);
    if (source.range !== undefined) ranges.push(source.range);
  }
  await pusher.end();
  if (ranges.length === 0) return undefined;
  const least = (a: bigint, b: bigint) => (a < b ? a : b);
  return {
    fromNs: ranges.map(({ fromNs }) => fromNs).reduce(least),
    toNs: -ranges.map(({ toNs }) => -toNs).reduce(least),
  };
}

/** Flags that ask the times of all lines, where the command line does not say otherwise. */
function wholeRange(range: TimeRange | undefined, isSet: Given<Flags>["isSet"]) {
  const isRanged = isSet("from") || isSet("to") || isSet("since");
  if (range === undefined || isRanged) return {};
  return { from: nsText(range.fromNs), to: nsText(range.toNs) };
}

/** Flags of a command that answers lines: all of them, the oldest first, where the command line has no limit. */
function allLines(isSet: Given<Flags>["isSet"]) {
  return isSet("limit") ? {} : { limit: 0, forward: true };
}

/** A time of all digits: fewer would be seconds. */
function nsText(ns: bigint): string {
  return `${ns}`.padStart(19, "0");
}

/** The query with a selector: over lines without a server it may begin with its first stage, and `{}` is all lines. */
function wholeQuery(text: string): string {
  const all = '{filename=~".+"}';
  if (/^\s*(\||!=|!~|$)/.test(text)) return `${all} ${text}`;
  return text.replace(/(^|[\s(])\{\s*\}/g, `$1${all}`);
}

/** Labels that the selectors of a query ask for: plain lines have none, so they get these. */
function labelsOf(query: string | undefined): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { matchers } = node as { matchers?: unknown };
    if (Array.isArray(matchers))
      for (const { name, op, value } of matchers)
        if (op === "=" && name !== "filename" && value !== "") labels[name] = value;
    for (const child of Object.values(node)) visit(child);
  };
  try {
    if (query !== undefined) visit(parseQuery(query));
  } catch {
    // The server says what is wrong with it.
  }
  return labels;
}

/** The files that a pattern with * and ? in its last part names. */
function expand(pattern: string): string[] {
  if (!/[*?]/.test(basename(pattern))) {
    if (statSync(pattern, { throwIfNoEntry: false }) === undefined)
      throw new Failure("usage", `--files: there is no ${pattern}`);
    return [pattern];
  }
  const folder = dirname(pattern);
  const text = basename(pattern).replace(/[.+^${}()|[\]\\]/g, "\\$&");
  const names = new RegExp(`^${text.replace(/\*/g, ".*").replace(/\?/g, ".")}$`);
  const found = readdirSync(folder, { withFileTypes: true }).filter(
    (one) => one.isFile() && names.test(one.name),
  );
  if (found.length === 0) throw new Failure("usage", `--files: no file is ${pattern}`);
  return found.map(({ name }) => (folder === "." ? name : join(folder, name))).sort();
}
