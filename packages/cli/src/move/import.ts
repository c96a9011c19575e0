import { setTimeout as pause } from "node:timers/promises";
import { runConcurrently } from "@skald/runtime";
import { Client } from "../client/client.js";
import { askFlags, rangeFlags } from "../client/flags.js";
import { Session } from "../client/session.js";
import { type ConnectionFlags, connectionFlags, connectionOf } from "../client/settings.js";
import { type Entry, type LabelSet, labelText } from "../output/entries.js";
import type { MetricResult } from "../output/metric-output.js";
import {
  type AnyCommand,
  command,
  exits,
  Failure,
  type Flag,
  type Flags,
  flag,
  type Values,
} from "../shell/command.js";
import { Progress, sizeText } from "../shell/progress.js";
import { parseDuration } from "../shell/times.js";
import { type PushedStream, pushStreams } from "./push-streams.js";
import { rangeOfWork, type SlicedWork } from "./slices.js";
import { linePages, openSlices, queriesOf, type StreamGroups } from "./stream-groups.js";

/** The flags of the source: those of the target with `from-` before them. */
const sourceFlags: Flags = Object.fromEntries(
  Object.entries(connectionFlags)
    .filter(
      ([name]) => !["addr", "context", "retries", "min-backoff", "max-backoff"].includes(name),
    )
    .map(([name, { env: _, ...declared }]: [string, Flag]) => [
      `from-${name}`,
      { ...declared, says: `${declared.says}, of the source` },
    ]),
);

const { output: _output, ...otherAskFlags } = askFlags;
const importFlags = {
  "from-addr": flag.text("the address of the Loki or Skald to read from", "", { shown: "URL" }),
  state: flag.text("the file that has what is done", "skald-import.state", { shown: "FILE" }),
  parallel: flag.number("how many groups of streams are copied at once", 4),
  slice: flag.text("the time of one slice; default: by the range", "", { shown: "DURATION" }),
  batch: flag.number("most lines of one request", 5000),
  rate: flag.number("most MiB of lines a second; 0: as fast as it goes", 0),
  "no-verify": flag.boolean("does not count the lines on both sides at the end"),
  ...rangeFlags,
  ...otherAskFlags,
  retries: flag.number(
    "how often a request is repeated that was not answered, or with 5xx or 429",
    20,
    {
      env: "CLIENT_RETRIES",
    },
  ),
} as const;

export const importLines: AnyCommand = command({
  args: "[selector]",
  says: "Copies lines with their labels and structured metadata from a Loki or Skald, over its API, by slices of time. A run that was ended goes on when it is started again. At the end the lines of each stream and hour are counted on both sides; the exit code is 1 if they differ. The target's limits count: reject_old_samples has to be off for old lines.",
  flags: { ...importFlags, ...sourceFlags } as typeof importFlags,
  run: async ({ args, flags, isSet }, io) => {
    const [selector = ""] = args;
    if (flags["from-addr"] === "") throw new Failure("usage", "name the source: --from-addr URL");
    const session = new Session(flags, io);
    const source = new Client(connectionOf(fromFlags(flags), io.env), io.signal);
    const { addr } = source.connection;
    const known = isSet("from") || isSet("to") ? undefined : rangeOfWork(flags.state);
    const range = known ?? session.range(flags);
    const isAll = /^\s*(\{\s*\})?\s*$/.test(selector);
    const query = isAll ? await everything(source, range) : selector;
    const { work, groups } = await openSlices(source, query, {
      path: flags.state,
      work: `import ${addr} ${session.client.connection.addr} ${selector || "{}"}`,
      range,
      sliceNs: flags.slice === "" ? 0n : parseDuration("slice", flags.slice),
    });
    const copy = new Copy(source, session, { query, groups, flags });
    await copyAll(work, copy, session);
    session.note(
      `copied ${work.count.toLocaleString("en")} lines, ${sizeText(copy.bytes)} in this run`,
    );
    const { fromNs, toNs } = work;
    const both = { source, target: session.client };
    const isCounted = !flags["no-verify"];
    const differences = isCounted ? await compare(both, { query, fromNs, toNs }) : [];
    // Lines that a killed run had stored may be refused as too far behind: where the counts agree, nothing is missing.
    const isWhole = copy.refusals.size === 0 || (isCounted && differences.length === 0);
    if (!isWhole) {
      for (const refusal of copy.refusals) io.stderr.write(`${refusal}\n`);
      if ([...copy.refusals].some((refusal) => /too far behind|too old/.test(refusal)))
        session.note("the target takes old lines while its tenant has reject_old_samples: false");
    }
    if (differences.length > 0) {
      for (const one of differences.slice(0, shownDifferences)) io.stderr.write(`${one}\n`);
      io.stderr.write(`${differences.length} streams and hours differ; ${flags.state} is kept\n`);
      return exits.found;
    }
    work.forget();
    if (isCounted) session.note("each stream has as many lines in each hour on both sides");
    return isWhole ? exits.done : exits.partial;
  },
});

const shownDifferences = 20;
/** Each names up to ten lines. */
const shownRefusals = 3;

/** The source's flags under the names of the target's. */
function fromFlags(flags: Values<typeof importFlags>): ConnectionFlags {
  const own = Object.entries(flags).filter(([name]) => name.startsWith("from-"));
  const named = Object.fromEntries(own.map(([name, value]) => [name.slice("from-".length), value]));
  return { ...flags, ...named };
}

async function copyAll(work: SlicedWork, copy: Copy, session: Session): Promise<void> {
  const { slices } = work;
  const progress = new Progress(session.io.stderr, {
    ...{ bytes: undefined, parts: slices.length, partName: "slices" },
  });
  for (const slice of slices) if (work.isDone(slice)) progress.addPart(0);
  // One after the other: a target refuses lines that are far behind the newest one of their stream.
  await work.run(1, async (slice) => {
    const count = await copy.slice(slice, (bytes) => progress.add(bytes));
    progress.addPart(0);
    return count;
  });
  if (!session.isQuiet) progress.finish();
}

const apartHeader = { "x-loki-response-encoding-flags": "categorize-labels" };

interface CopyWork {
  readonly query: string;
  readonly groups: StreamGroups | undefined;
  readonly flags: Values<typeof importFlags>;
}

/** Reads pages from the source, and pushes each to the target. */
class Copy {
  /** Of lines in this run. */
  bytes = 0;
  /** What the target said of lines that it does not take. */
  readonly refusals = new Set<string>();
  readonly #source: Client;
  readonly #target: Session;
  readonly #work: CopyWork;
  readonly #startMs = performance.now();

  constructor(source: Client, target: Session, work: CopyWork) {
    this.#source = source;
    this.#target = target;
    this.#work = work;
  }

  /** Copies a range of time, the lines of each stream in their order; resolves with the number of lines. */
  async slice(
    range: { readonly fromNs: bigint; readonly toNs: bigint },
    onBytes: (bytes: number) => void,
  ): Promise<number> {
    const { query, groups, flags } = this.#work;
    const { batch, retries, parallel } = flags;
    const { fromNs, toNs } = range;
    let count = 0;
    const asked = { query, fromNs, toNs, batch, headers: apartHeader, retries };
    const queries = await queriesOf(groups, asked);
    await runConcurrently(queries, parallel, this.#source.signal, async (one, signal) => {
      for await (const page of linePages(this.#source.until(signal), { ...asked, query: one })) {
        if (page.entries.length === 0) continue;
        await this.#push(page.entries);
        const bytes = page.entries.reduce((sum, { line }) => sum + line.length, 0);
        this.bytes += bytes;
        count += page.entries.length;
        onBytes(bytes);
        await this.#slowDown();
      }
    });
    return count;
  }

  async #push(entries: readonly Entry[]): Promise<void> {
    const streams = new Map<LabelSet, PushedStream["values"][number][]>();
    for (const { ns, line, labels, metadata = {} } of entries) {
      const values = streams.get(labels) ?? [];
      const apart = asPushed(metadata, labels);
      values.push(Object.keys(apart).length === 0 ? [`${ns}`, line] : [`${ns}`, line, apart]);
      streams.set(labels, values);
    }
    const pushed = [...streams].map(([stream, values]) => ({ stream, values }));
    const { client } = this.#target;
    const tell = (note: string) => this.#target.note(note);
    const { retries } = this.#work.flags;
    for (const refusal of await pushStreams(client, pushed, { retries, tell }))
      if (this.refusals.size < shownRefusals) this.refusals.add(refusal);
  }

  /** Waits until the rate is the one that was asked for. */
  async #slowDown(): Promise<void> {
    const { rate } = this.#work.flags;
    if (rate <= 0) return;
    const dueMs = (this.bytes / (rate * 1024 * 1024)) * 1000;
    const waitMs = dueMs - (performance.now() - this.#startMs);
    if (waitMs > 0) await pause(waitMs, undefined, { signal: this.#source.signal });
  }
}

/** Metadata as it was pushed: an answer shows `app` as `app_extracted` beside a label `app`. */
function asPushed(metadata: LabelSet, labels: LabelSet): LabelSet {
  return Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => {
      const [, own = name] = /^(.+)_extracted$/.exec(name) ?? [];
      return [Object.hasOwn(labels, own) ? own : name, value];
    }),
  );
}

type Range = { readonly fromNs: bigint; readonly toNs: bigint };

/** The names of labels in a range, asked day by day, because servers limit how long a query may be. */
async function labelNames(
  client: Client,
  { fromNs, toNs }: Range,
  query?: string,
): Promise<string[]> {
  const names = new Set<string>();
  for (let at = fromNs; at < toNs; at += dayNs) {
    const end = at + dayNs < toNs ? at + dayNs : toNs;
    const params = { start: `${at}`, end: `${end}`, query };
    const { data } = await client.json<LabelAnswer>("/loki/api/v1/labels", params);
    for (const name of data ?? []) names.add(name);
  }
  return [...names];
}

interface LabelAnswer {
  readonly data?: readonly string[] | null;
}

/** A selector of all streams: servers refuse one without a value that is asked for. */
async function everything(client: Client, range: Range): Promise<string> {
  const names = await labelNames(client, range);
  const name = ["service_name", "job", "app"].find((one) => names.includes(one)) ?? names[0];
  if (name === undefined) throw new Failure("usage", "the source has no streams in this range");
  return `{${name}=~".+"}`;
}

const hourNs = 3_600_000_000_000n;
const dayNs = 24n * hourNs;

/** Counts the lines of each stream and hour on both sides; says what differs. */
async function compare(
  { source, target }: { readonly source: Client; readonly target: Client },
  { query, fromNs, toNs }: Range & { readonly query: string },
): Promise<string[]> {
  const names = await labelNames(source, { fromNs, toNs }, selectorOf(query));
  const differences: string[] = [];
  for (let at = fromNs; at < toNs; ) {
    const end = at - (at % hourNs) + hourNs < toNs ? at - (at % hourNs) + hourNs : toNs;
    const asked = { query, names, fromNs: at, toNs: end };
    const [wanted, found] = await Promise.all([
      countStreams(source, asked),
      countStreams(target, asked),
    ]);
    const hour = new Date(Number(at / 1_000_000n)).toISOString();
    for (const [stream, count] of wanted) {
      const there = found.get(stream) ?? 0;
      if (there !== count)
        differences.push(`${hour} ${stream}: ${count} at the source, ${there} at the target`);
    }
    at = end;
  }
  return differences;
}

/** The selector at the start of a query. */
function selectorOf(query: string): string {
  return /^\s*\{(?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^}"`])*\}/.exec(query)?.[0] ?? query;
}

async function countStreams(
  client: Client,
  {
    query,
    names,
    fromNs,
    toNs,
  }: Range & { readonly query: string; readonly names: readonly string[] },
): Promise<Map<string, number>> {
  const window = `[${(toNs - fromNs) / 1_000_000n}ms]`;
  // A window has its end and not its start.
  const params = {
    query: `sum by (${names.join(", ")}) (count_over_time(${query} ${window}))`,
    time: `${toNs - 1n}`,
  };
  const { data } = await client.json<{ readonly data: MetricResult }>("/loki/api/v1/query", params);
  if (data.resultType !== "vector") return new Map();
  return new Map(data.result.map(({ metric, value }) => [labelText(metric), Number(value[1])]));
}
