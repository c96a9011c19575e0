import { createServer, type Server } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { Metrics } from "@skald/runtime/metrics";
import { WebSocket } from "ws";

export interface CanaryOptions {
  /** The address of the store, without a path. */
  readonly url: string;
  /** Sent with every request; the tenant is one of them. */
  readonly headers: Readonly<Record<string, string>>;
  /** The value of the label `canary`. Two canaries of one tenant need different names. */
  readonly name: string;
  /** The pause between two pushes. */
  readonly intervalMs: number;
  /** The pause between two rounds of queries. */
  readonly checkMs: number;
  /** How far back the queries look. */
  readonly historyMs: number;
  /** A tail has this long to send a line that was acknowledged. */
  readonly tailWaitMs: number;
  readonly onFinding: (text: string) => void;
}

/** How a line comes back. */
export const ways = ["forward", "backward", "count", "tail"] as const;
export type Way = (typeof ways)[number];

/** What the canary saw since it started. Lines are counted in each answer that is wrong about them. */
export interface CanaryReport {
  readonly pushed: number;
  readonly checks: number;
  readonly missing: number;
  readonly duplicates: number;
  readonly unexpected: number;
  /** Pushes and queries without an answer, and tails that broke. They are tried again, and no line is judged by them. */
  readonly failures: number;
}

interface Batch {
  /** The number of the first line. */
  readonly first: number;
  readonly startNs: bigint;
  readonly acknowledgedMs: number;
  /** Numbers of the lines that the tail sent; undefined if no tail was open during the push, or its lines were judged. */
  tailed: Map<number, number> | undefined;
}

const streams = 4;
const linesPerBatch = 20;
/** Lines of a batch are this far apart. */
const stepNs = 1000n;
/** A query covers at most this many batches: 1000 lines, and asks for twice as many, so that each may be doubled. */
const batchesPerQuery = 50;
const nsPerMs = 1_000_000n;
const retryMs = 500;
const requestTimeoutMs = 60_000;

/** Pushes numbered lines, reads them back by every way, and counts lines that are missing, doubled or changed. */
export class Canary {
  readonly #options: CanaryOptions;
  readonly #metrics = new Metrics();
  readonly #counters = createCounters(this.#metrics);
  /** Acknowledged batches of the history, oldest first. */
  readonly #batches: Batch[] = [];
  readonly #report = {
    ...{ pushed: 0, checks: 0, missing: 0, duplicates: 0, unexpected: 0, failures: 0 },
  };
  /** The batch that is being pushed: the tail may send its lines before the push is answered. */
  #pushing: Batch | undefined;
  #isTailOpen = false;

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  get report(): CanaryReport {
    return { ...this.#report };
  }

  /** Works until the signal aborts, then checks all lines of the history once more. */
  async run(signal: AbortSignal): Promise<void> {
    const tailing = this.#tail(signal);
    const pushing = this.#push(signal);
    while (!signal.aborted) {
      await rest(this.#options.checkMs, signal);
      await this.#check(this.#recent());
      if (!signal.aborted) await this.#check(this.#older());
    }
    await Promise.all([tailing, pushing]);
    for (let at = 0; at < this.#batches.length; at += batchesPerQuery)
      await this.#check(this.#batches.slice(at, at + batchesPerQuery));
  }

  /** Serves `/metrics`; resolves with the server once it listens. */
  async serve(port: number): Promise<Server> {
    const server = createServer(async ({ url }, answer) => {
      const found = url === "/metrics" ? await this.#metrics.read() : undefined;
      answer.writeHead(found === undefined ? 404 : 200, { "content-type": found?.contentType });
      answer.end(found?.text);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, resolve);
    });
    return server;
  }

  async #push(signal: AbortSignal): Promise<void> {
    for (let first = 0; !signal.aborted; first += linesPerBatch) {
      // A clock that is set back must not mix the lines of two batches.
      const earliestNs = (this.#batches.at(-1)?.startNs ?? 0n) + nsPerMs;
      const nowNs = BigInt(Date.now()) * nsPerMs;
      const startNs = nowNs > earliestNs ? nowNs : earliestNs;
      const tailed = this.#isTailOpen ? new Map<number, number>() : undefined;
      const batch: Batch = { first, startNs, tailed, acknowledgedMs: 0 };
      this.#pushing = batch;
      // A batch that was sent may be stored, so it is repeated as it is until it is acknowledged.
      while (!(await this.#pushOnce(batch))) {
        if (signal.aborted) return;
        await rest(retryMs, signal);
      }
      this.#batches.push({ ...batch, acknowledgedMs: Date.now() });
      this.#pushing = undefined;
      this.#report.pushed += linesPerBatch;
      this.#counters.entries.inc(linesPerBatch);
      this.#judgeTail();
      const oldestMs = Date.now() - this.#options.historyMs;
      while (this.#batches.length > 1 && this.#batches[0]!.acknowledgedMs < oldestMs)
        this.#batches.shift();
      await rest(this.#options.intervalMs, signal);
    }
  }

  async #pushOnce({ first, startNs }: Batch): Promise<boolean> {
    const body = JSON.stringify({
      streams: Array.from({ length: streams }, (_, stream) => ({
        stream: { canary: this.#options.name, stream: String(stream) },
        values: Array.from({ length: linesPerBatch / streams }, (_, i) => {
          const ns = startNs + BigInt(i * streams + stream) * stepNs;
          return [String(ns), lineOf(first + i * streams + stream, ns)];
        }),
      })),
    });
    const headers = { "content-type": "application/json" };
    const answer = await this.#ask("push", "/loki/api/v1/push", { method: "POST", body, headers });
    return answer !== undefined;
  }

  #recent(): readonly Batch[] {
    return this.#batches.slice(-batchesPerQuery);
  }

  /** Some batches of the history, which are in the store by now or in its caches. */
  #older(): readonly Batch[] {
    const from = Math.floor(Math.random() * Math.max(this.#batches.length - batchesPerQuery, 0));
    return this.#batches.slice(from, from + batchesPerQuery);
  }

  async #check(batches: readonly Batch[]): Promise<void> {
    const first = batches[0];
    const last = batches.at(-1);
    if (first === undefined || last === undefined) return;
    const selector = `{canary=${JSON.stringify(this.#options.name)}}`;
    const endNs = last.startNs + BigInt(linesPerBatch) * stepNs;
    for (const direction of ["forward", "backward"] as const) {
      const found = await this.#query<LogStream>(direction, "query_range", {
        ...{ query: selector, direction, limit: String(2 * batchesPerQuery * linesPerBatch) },
        ...{ start: String(first.startNs), end: String(endNs) },
      });
      if (found !== undefined) this.#judgeLines(direction, batches, found);
    }
    // A range leaves its start out and has its end. Batches begin with a millisecond, and durations have no smaller unit.
    const rangeMs = (last.startNs - first.startNs) / nsPerMs + 1n;
    const query = `sum(count_over_time(${selector}[${rangeMs}ms]))`;
    const time = String(last.startNs + nsPerMs - 1n);
    const sums = await this.#query<Sample>("count", "query", { query, time });
    if (sums === undefined) return;
    this.#report.checks++;
    const counted = Number(sums.result[0]?.value[1] ?? 0);
    const difference = counted - batches.length * linesPerBatch;
    const range = `lines ${first.first} to ${last.first + linesPerBatch - 1}`;
    const among = `among ${range}, ${sourcesOf(sums)}`;
    if (difference < 0) this.#find("missing", "count", -difference, among);
    if (difference > 0) this.#find("duplicates", "count", difference, among);
  }

  #judgeLines(way: Way, batches: readonly Batch[], found: Found<LogStream>): void {
    const seen = new Map<number, number>();
    /** Labels by the number of a line: an answer has each set once, so that copies with other labels show. */
    const labels = new Map<number, LogStream["stream"]>();
    let unlike: string | undefined;
    let unexpected = 0;
    let example: string | undefined;
    for (const { stream, values } of found.result) {
      for (const [ns, line] of values) {
        const number = numberOf(stream, ns, line);
        if (number === undefined) {
          unexpected++;
          example ??= `such as ${ns} ${line}`;
          continue;
        }
        const other = labels.get(number) ?? stream;
        if (other !== stream)
          unlike ??= `, once with ${JSON.stringify(other)}, once with ${JSON.stringify(stream)}`;
        seen.set(number, (seen.get(number) ?? 0) + 1);
        labels.set(number, stream);
      }
    }
    const sources = sourcesOf(found);
    let missing = 0;
    let missed: number | undefined;
    const doubled: number[] = [];
    for (const { first } of batches) {
      for (let line = first; line < first + linesPerBatch; line++) {
        const times = seen.get(line) ?? 0;
        if (times === 0) missing++;
        if (times === 0) missed ??= line;
        for (let again = 1; again < times; again++) doubled.push(line);
        seen.delete(line);
      }
    }
    if (doubled.length > 0) {
      const range = `lines ${doubled[0]} to ${doubled.at(-1)}${unlike ?? ""}`;
      this.#find("duplicates", way, doubled.length, `${range}, ${sources}`);
    }
    if (missing > 0) this.#find("missing", way, missing, `such as line ${missed}, ${sources}`);
    unexpected += seen.size;
    if (unexpected > 0) this.#find("unexpected", way, unexpected, example);
  }

  /** Judges the lines that the tail had time to send. */
  #judgeTail(): void {
    for (const batch of this.#batches) {
      if (Date.now() - batch.acknowledgedMs < this.#options.tailWaitMs) return;
      if (batch.tailed === undefined) continue;
      const missing = linesPerBatch - batch.tailed.size;
      if (missing > 0) this.#find("missing", "tail", missing, `after line ${batch.first}`);
      batch.tailed = undefined;
    }
  }

  /** Keeps a tail open. */
  async #tail(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#tailOnce(signal);
      this.#isTailOpen = false;
      // Lines that a new tail does not send are not missing.
      for (const batch of this.#batches) batch.tailed = undefined;
      if (this.#pushing !== undefined) this.#pushing.tailed = undefined;
      if (signal.aborted) return;
      this.#fail("tail", "the tail ended");
      await rest(retryMs, signal);
    }
  }

  /** Resolves when the connection is gone. */
  async #tailOnce(signal: AbortSignal): Promise<void> {
    const { url, headers, name } = this.#options;
    const start = String(BigInt(Date.now()) * nsPerMs);
    const query = new URLSearchParams({ query: `{canary=${JSON.stringify(name)}}`, start });
    const target = `${url.replace(/^http/, "ws")}/loki/api/v1/tail?${query}`;
    const socket = new WebSocket(target, { headers, handshakeTimeout: requestTimeoutMs });
    const close = () => socket.terminate();
    signal.addEventListener("abort", close);
    socket.on("open", () => {
      this.#isTailOpen = true;
    });
    socket.on("message", (data) => this.#takeTailed(JSON.parse(String(data))));
    await new Promise<void>((resolve) => {
      socket.on("error", (error) => this.#options.onFinding(`tail: ${error.message}`));
      socket.once("close", () => resolve());
    });
    signal.removeEventListener("abort", close);
  }

  #takeTailed({ streams: rows, dropped_entries: dropped }: TailMessage): void {
    const nowMs = Date.now();
    for (const { stream, values } of rows ?? []) {
      for (const [ns, line] of values) {
        const number = numberOf(stream, ns, line);
        if (number === undefined) {
          this.#find("unexpected", "tail", 1, `such as ${ns} ${line}`);
          continue;
        }
        this.#counters.latency.observe(Math.max(0, nowMs - Number(BigInt(ns) / nsPerMs)) / 1000);
        const tailed = this.#batchOf(number)?.tailed;
        if (tailed === undefined) continue;
        const times = (tailed.get(number) ?? 0) + 1;
        tailed.set(number, times);
        if (times > 1) this.#find("duplicates", "tail", 1, `such as line ${number}`);
      }
    }
    // The server said that it left lines out for a slow client, so they are not lost.
    if (dropped?.length) for (const batch of this.#batches) batch.tailed = undefined;
  }

  #batchOf(number: number): Batch | undefined {
    const first = number - (number % linesPerBatch);
    if (this.#pushing?.first === first) return this.#pushing;
    return this.#batches[(first - (this.#batches[0]?.first ?? 0)) / linesPerBatch];
  }

  /** Resolves with the data of an answer; undefined if there is none, or it has a warning. */
  async #query<Row>(
    way: string,
    path: string,
    params: Readonly<Record<string, string>>,
  ): Promise<Found<Row> | undefined> {
    const text = await this.#ask(way, `/loki/api/v1/${path}?${new URLSearchParams(params)}`);
    if (text === undefined) return undefined;
    const { data, warnings } = JSON.parse(text) as QueryAnswer<Row>;
    if (warnings?.[0] === undefined) return data;
    this.#fail(way, `warning: ${warnings[0]}`);
    return undefined;
  }

  /** Resolves with the body of an answer below 300; any other answer is a failure, and undefined. */
  async #ask(way: string, path: string, init: RequestInit = {}): Promise<string | undefined> {
    try {
      const answer = await fetch(`${this.#options.url}${path}`, {
        ...{ ...init, signal: AbortSignal.timeout(requestTimeoutMs) },
        headers: { ...this.#options.headers, ...(init.headers as Record<string, string>) },
      });
      const text = await answer.text();
      if (answer.ok) return text;
      this.#fail(way, `${answer.status} ${text.trim()}`);
    } catch (error) {
      const { message, cause } = error as Error;
      this.#fail(way, cause instanceof Error ? `${message}: ${cause.message}` : message);
    }
    return undefined;
  }

  #fail(way: string, why: string): void {
    this.#report.failures++;
    this.#counters.failures.inc({ way });
    this.#options.onFinding(`${way} failed: ${why}`);
  }

  #find(kind: Finding, way: Way, lines: number, example?: string): void {
    this.#report[kind] += lines;
    this.#counters[kind].inc({ way }, lines);
    const such = example === undefined ? "" : `, ${example}`;
    this.#options.onFinding(`${way}: ${lines} lines ${says[kind]}${such}`);
  }
}

type Finding = "missing" | "duplicates" | "unexpected";

const says: Readonly<Record<Finding, string>> = {
  missing: "are missing",
  duplicates: "are doubled",
  unexpected: "were never pushed like this",
};

interface LogStream {
  readonly stream: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [ns: string, line: string, ...rest: unknown[]])[];
}

interface Sample {
  readonly value: readonly [seconds: number, value: string];
}

interface TailMessage {
  readonly streams?: readonly LogStream[] | null;
  readonly dropped_entries?: readonly object[] | null;
}

interface QueryAnswer<Row> {
  readonly data: Found<Row>;
  readonly warnings?: readonly string[];
}

interface Found<Row> {
  readonly result: readonly Row[];
  readonly stats?: {
    readonly ingester?: { readonly totalReached?: number; readonly totalLinesSent?: number };
    readonly store?: { readonly totalChunksRef?: number };
  };
}

/** Where the rows of an answer come from. */
function sourcesOf({ stats: { ingester, store } = {} }: Found<unknown>): string {
  const { totalReached = 0, totalLinesSent = 0 } = ingester ?? {};
  const { totalChunksRef = 0 } = store ?? {};
  return `ingesters: ${totalReached}, their lines: ${totalLinesSent}, chunks of the store: ${totalChunksRef}`;
}

/** The metrics of Loki's canary, with the way as a label. */
function createCounters(metrics: Metrics) {
  const counter = (name: string, help: string) =>
    metrics.counter(`canary_${name}_total`, help, ["way"]);
  const counters = {
    entries: metrics.counter("canary_entries_total", "Lines that were pushed and acknowledged."),
    missing: counter("missing_entries", "Acknowledged lines that an answer leaves out."),
    duplicates: counter("duplicate_entries", "Lines that an answer has more than once."),
    unexpected: counter("unexpected_entries", "Lines of an answer that were not pushed like this."),
    failures: counter("failures", "Pushes and queries that failed, and tails that ended."),
    latency: metrics.histogram(
      "canary_response_latency_seconds",
      "Time from a push to its lines in the tail.",
    ),
  };
  // Alerts need the counters from the start.
  for (const way of ways)
    for (const kind of ["missing", "duplicates", "unexpected"] as const)
      counters[kind].inc({ way }, 0);
  return counters;
}

function lineOf(number: number, ns: bigint): string {
  return `line ${number} at ${ns}`;
}

/** The number of a line that is as it was pushed: time, text and stream belong together. */
function numberOf(
  stream: Readonly<Record<string, string>>,
  ns: string,
  line: string,
): number | undefined {
  const number = Number(line.split(" ")[1]);
  const isWhole = Number.isSafeInteger(number) && line === lineOf(number, BigInt(ns));
  return isWhole && stream.stream === String(number % streams) ? number : undefined;
}

/** Pauses, or less when the signal aborts. */
async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}
