import { withDeadline } from "@skald/runtime";
import { askFlags, rangeFlags, sourceFlags } from "../client/flags.js";
import {
  countLines,
  type LogPage,
  lacks,
  type MetricPage,
  queryRange,
  type RangeQuery,
} from "../client/log-pages.js";
import { readQuery, Session, wantsColour } from "../client/session.js";
import { tail } from "../client/tail.js";
import { withSession } from "../move/local.js";
import { type LabelSet, labelText } from "../output/entries.js";
import { type LogForm, LogOutput, logForms } from "../output/log-output.js";
import { formatMetric, type MetricResult } from "../output/metric-output.js";
import { ParquetLines } from "../output/parquet.js";
import {
  type AnyCommand,
  command,
  exits,
  Failure,
  flag,
  type Io,
  type Values,
} from "../shell/command.js";
import { sizeText } from "../shell/progress.js";
import { parseTime, spanOf, type TimeFormat } from "../shell/times.js";
import { downloadParts, partFlags } from "./parts.js";

/** Flags of the output of lines. */
const lineFlags = {
  limit: flag.number("most lines; 0: all", 30),
  forward: flag.boolean("the oldest lines first"),
  "no-labels": flag.boolean("lines without labels"),
  "include-label": flag.list("only these labels; may be repeated", { shown: "NAME" }),
  "exclude-label": flag.list("all labels but these; may be repeated", { shown: "NAME" }),
  "include-common-labels": flag.boolean("labels that all lines share stay with each line"),
  "labels-length": flag.number("the width of labels in -o default; 0: that of the longest", 0),
  "colored-output": flag.boolean("a colour for each stream, with -o default on a terminal"),
  color: flag.text("when to use colours", "auto", { choices: ["auto", "always", "never"] }),
  cols: flag.text(
    "columns of csv and table: time, line, labels, or names of labels",
    "time,labels,line",
    {
      shown: "NAMES",
    },
  ),
} as const;

/** Flags of logcli for a store that is read without a server. */
const storeFlags = {
  "store-config": flag.text("without meaning here: see --dir", "", { shown: "FILE" }),
  "remote-schema": flag.boolean("without meaning here: segments have no schema"),
  "schema-store": flag.text("without meaning here: segments have no schema", "", { shown: "NAME" }),
} as const;

const followFlags = {
  "delay-for": flag.number("seconds that a tail waits for lines that come late", 0),
} as const;

const queryFlags = {
  ...lineFlags,
  ...rangeFlags,
  at: flag.text("one time instead of a range, for metric queries", "", { shown: "TIME" }),
  step: flag.text("the time between two points of a metric query", "", { shown: "DURATION" }),
  interval: flag.text("the least time between two lines", "", { shown: "DURATION" }),
  batch: flag.number("most lines of one request", 1000),
  follow: flag.boolean("goes on with lines as they come in", { short: "f" }),
  tail: flag.boolean("the same", { short: "t" }),
  ...followFlags,
  ...partFlags,
  ...storeFlags,
  ...sourceFlags,
  ...askFlags,
} as const;

type QueryFlags = Values<typeof queryFlags>;

export const query: AnyCommand = command({
  args: "[logql]",
  says: "Runs a query over a range of time, or at one time with --at. Without a query, or with -, it is read from stdin. Lines and values go to stdout, all else to stderr. The exit code is 5 if the answer lacks something.",
  flags: queryFlags,
  run: async (given, io) => {
    const { args, isSet } = given;
    // Lines come from stdin, so the query cannot.
    const asked = given.flags.stdin ? (args[0] ?? "") : await readQuery(args, io);
    return withSession(given, asked, io, (session, { flags, query: text = "" }) => {
      for (const name of Object.keys(storeFlags) as (keyof typeof storeFlags)[])
        if (isSet(name)) session.note(`--${name} has no meaning here`);
      return withHint(text, () => {
        if (flags.at !== "") return runInstant(text, { ...flags, now: flags.at }, session);
        if (flags.follow || flags.tail) return runTail(text, flags, session);
        return runRange(text, flags, session);
      });
    });
  },
});

export const tailCommand: AnyCommand = command({
  args: "[logql]",
  says: "Shows the last lines, and goes on with lines as they come in. After a lost connection it goes on at its last line.",
  flags: {
    ...lineFlags,
    ...rangeFlags,
    limit: flag.number("most lines of the past", 20),
    since: flag.text("how far back, when there is no --from", "10m", { shown: "DURATION" }),
    batch: flag.number("most lines of one request", 1000),
    ...followFlags,
    ...askFlags,
  },
  run: async ({ args, flags }, io) => {
    const text = await readQuery(args, io);
    return withHint(text, () => runTail(text, flags, new Session(flags, io)));
  },
});

const instantFlags = {
  ...lineFlags,
  now: flag.text("the time; default: now", "now", { shown: "TIME" }),
  ...storeFlags,
  ...sourceFlags,
  ...askFlags,
} as const;

export const instantQuery: AnyCommand = command({
  args: "[logql]",
  says: "Runs a metric query at one time. It is logcli's name for skald query --at.",
  flags: instantFlags,
  run: async (given, io) => {
    const asked = given.flags.stdin ? (given.args[0] ?? "") : await readQuery(given.args, io);
    return withSession(given, asked, io, (session, { flags, query: text = "" }) =>
      withHint(text, () => runInstant(text, flags, session)),
    );
  },
});

/** Shows where a query that the server refused has its mistake. */
async function withHint(text: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== exits.refused) throw error;
    const { mistakeOf } = await import("./fmt.js");
    throw new Failure("refused", mistakeOf(text) ?? error.message, { cause: error });
  }
}

async function runInstant(
  text: string,
  flags: Omit<Values<typeof instantFlags>, keyof typeof storeFlags | keyof typeof sourceFlags>,
  session: Session,
): Promise<number> {
  const { client, zone } = session;
  const nowNs = BigInt(Date.now()) * 1_000_000n;
  const time = parseTime("at", flags.now, zone, nowNs);
  const params = {
    query: text,
    time: `${time}`,
    limit: flags.limit || undefined,
    direction: directionOf(flags),
  };
  const { data, warnings = [] } = await client.json<{
    readonly data: MetricResult & { readonly stats?: unknown };
    readonly warnings?: readonly string[];
  }>("/loki/api/v1/query", params);
  return writeMetric({ kind: "metric", answer: data, stats: data.stats, warnings }, flags, session);
}

async function runRange(text: string, flags: QueryFlags, session: Session): Promise<number> {
  const range = session.range(flags);
  const form = chosenForm(flags, session.io);
  const isPretty = form === "pretty" || form === "table";
  const asked: RangeQuery = {
    ...{ query: text, ...range, limit: flags.limit, batch: flags.batch },
    ...{ step: spanOf("step", flags.step), interval: spanOf("interval", flags.interval) },
    // People read from top to bottom: where all lines come, the oldest are first.
    isForward: flags.forward || (isPretty && flags.limit === 0),
  };
  tellRange(session, asked);
  if (flags["part-path-prefix"] !== "" || flags["parallel-max-workers"] > 1)
    return downloadParts(asked, { flags, session, output: outputOf(flags, session, false) });
  const held: LogPage[] = [];
  let [count, lacking, isCut] = [0, 0, false];
  const cost = new Cost();
  let output: LogOutput | undefined;
  let file: ParquetLines | undefined;
  for await (const page of queryRange(session.client, asked)) {
    if (page.kind === "metric") return writeMetric(page, flags, session);
    lacking += tellPage(page, flags, session);
    cost.add(page.stats);
    count += page.entries.length;
    isCut = page.isCut;
    if (form === "parquet") {
      file ??= await ParquetLines.open();
      await file.add(page.entries);
    } else if (isPretty) held.push(page);
    else {
      output ??= outputOf(flags, session, false);
      tellCommon(session, output.common(page.streams));
      await session.write(output.format(page.streams, page.entries));
    }
  }
  if (form === "parquet") {
    file ??= await ParquetLines.open();
    await session.write(await file.finish());
  } else if (isPretty) {
    const entries = held.flatMap((page) => page.entries);
    if (!asked.isForward) entries.reverse();
    const streams = held.flatMap((page) => page.streams);
    await session.write(outputOf(flags, session, false).format(streams, entries));
  }
  await tellEnd(session, { asked, count, isCut, cost });
  return lacking > 0 ? exits.partial : exits.done;
}

async function runTail(
  text: string,
  flags: Values<typeof lineFlags & typeof rangeFlags & typeof followFlags & typeof askFlags> & {
    readonly batch: number;
  },
  session: Session,
): Promise<number> {
  const { client } = session;
  const { fromNs, toNs } = session.range({ ...flags, to: "" });
  if (flags.to !== "") session.note("--to has no meaning here");
  const output = outputOf(flags, session, true);
  const pages = tail(client, {
    ...{ query: text, fromNs: flags.limit > 0 ? fromNs : toNs, delaySeconds: flags["delay-for"] },
    ...{ limit: flags.limit, batch: flags.batch },
    onNote: (note) => session.note(note),
  });
  for await (const { streams, entries } of pages)
    await session.write(output.format(streams, entries));
  return exits.interrupted;
}

async function writeMetric(
  page: MetricPage,
  flags: Values<typeof lineFlags & typeof askFlags>,
  session: Session,
): Promise<number> {
  const { io, zone } = session;
  const lacking = tellPage(page, flags, session);
  const form = chosenForm(flags, io);
  const isColoured = wantsColour(flags.color, io);
  const columns = io.stdout.columns ?? 100;
  await session.write(await formatMetric(page.answer, { form, zone, columns, isColoured }));
  const cost = new Cost();
  cost.add(page.stats);
  if (cost.text !== "") session.note(cost.text);
  return lacking > 0 ? exits.partial : exits.done;
}

/** The form that is asked for: on a terminal the one for people, else that of logcli. */
function chosenForm(flags: { readonly output: string }, { stdout }: Io): string {
  return flags.output || (stdout.isTTY === true ? "pretty" : "default");
}

function outputOf(
  flags: Values<typeof lineFlags & typeof askFlags>,
  { io, zone }: Session,
  isLive: boolean,
): LogOutput {
  const form = chosenForm(flags, io);
  if (form === "parquet")
    throw new Failure(
      "usage",
      "-o parquet is for a whole answer, not for lines that go on or parts",
    );
  if (!(logForms as readonly string[]).includes(form))
    throw new Failure(
      "usage",
      `-o ${form} is for metric queries; lines have ${logForms.join(", ")}, parquet`,
    );
  return new LogOutput({
    ...{ form: form as LogForm, zone, isLive },
    timeFormat: flags["output-timestamp-format"] as TimeFormat,
    labels: {
      isWithout: flags["no-labels"],
      include: flags["include-label"],
      exclude: flags["exclude-label"],
      keepsCommon: flags["include-common-labels"],
    },
    labelsWidth: flags["labels-length"],
    columns: flags.cols.split(",").map((one) => one.trim()),
    isColoured: wantsColour(flags.color, io),
    hasColourByStream: flags["colored-output"],
  });
}

function directionOf({ forward }: { readonly forward: boolean }): string {
  return forward ? "FORWARD" : "BACKWARD";
}

function tellRange(session: Session, { fromNs, toNs }: RangeQuery): void {
  const [from, to] = [fromNs, toNs].map((ns) => session.time(ns));
  session.note(`${from} to ${to}`);
}

function tellCommon(session: Session, common: LabelSet): void {
  if (Object.keys(common).length > 0) session.note(`Common labels: ${labelText(common)}`);
}

/** Notes about an answer; how many things it lacks. */
function tellPage(
  { warnings, stats }: LogPage | MetricPage,
  flags: { readonly stats: boolean },
  session: Session,
): number {
  const missing = lacks(warnings);
  for (const warning of missing) session.note(`warning: ${warning}`);
  if (flags.stats) session.io.stderr.write(`${JSON.stringify(stats, null, 2)}\n`);
  return missing.length;
}

const countTimeoutMs = 3000;

/** Says how many lines there are, those that the limit left out too, and what the answer cost. */
async function tellEnd(
  session: Session,
  answer: { asked: RangeQuery; count: number; isCut: boolean; cost: Cost },
): Promise<void> {
  const { asked, count, isCut, cost } = answer;
  if (session.isQuiet) return;
  const shown = count.toLocaleString("en");
  const lines = isCut
    ? await ofAll(shown, asked, session)
    : `${shown} line${count === 1 ? "" : "s"}`;
  const parts = [lines, cost.text, isCut ? "--limit 0 for all" : ""];
  session.note(parts.filter((part) => part !== "").join(" · "));
}

/** `30 newest of 65,481 lines`, if the server counts them in time. */
async function ofAll(shown: string, asked: RangeQuery, { client }: Session): Promise<string> {
  const which = asked.isForward ? "oldest" : "newest";
  const limit = { timeoutMs: countTimeoutMs, message: "no count in time", signal: client.signal };
  const total = await withDeadline(limit, (signal) =>
    countLines(client.until(signal), asked),
  ).catch(() => undefined);
  if (total === undefined) return `${shown} ${which} lines; there are more`;
  return `${shown} ${which} of ${total.toLocaleString("en")} lines`;
}

/** What the requests of an answer cost the server. */
class Cost {
  #bytes = 0;
  #seconds = 0;

  add(stats: unknown): void {
    const { totalBytesProcessed = 0, execTime = 0 } = (stats as Stats | undefined)?.summary ?? {};
    this.#bytes += totalBytesProcessed;
    this.#seconds += execTime;
  }

  /** `read 4.5 MiB · 91 ms`; empty if the server does not say it. */
  get text(): string {
    if (this.#seconds === 0) return "";
    return `read ${sizeText(this.#bytes)} · ${Math.ceil(this.#seconds * 1000)} ms`;
  }
}

/** The part of the API's statistics that is shown. */
interface Stats {
  readonly summary?: { readonly totalBytesProcessed?: number; readonly execTime?: number };
}
