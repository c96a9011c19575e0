import { setTimeout as pause } from "node:timers/promises";

/** The number of streams that the lines are spread over. */
const streams = 8;
const linesPerPush = 40;
const maxLines = 5000;
/** A push and a query are given up after these times. */
const pushTimeoutMs = 30_000;
const queryTimeoutMs = 60_000;
/** The pause before a push or a query is tried again. */
const retryMs = 50;
/** The pause between two counts during a fault. Without it the queries would slow down services that start. */
const countPauseMs = 100;

export interface NumberedLinesOptions {
  /** The tenant of the lines; a tenant has only one writer. */
  readonly tenant?: string;
  /** The pause after each push, ms. */
  readonly pauseMs?: number;
  /** Called after each push with its duration in ms, and with the failure if the push was not acknowledged. */
  readonly onPush?: (ms: number, failure: string | undefined) => void;
  /** Called after each query that failed. */
  readonly onFailedQuery?: (failure: string) => void;
  /** Whether the gateway may end: then a query that cannot reach it fails; otherwise the call rejects. */
  readonly gatewayMayEnd?: boolean;
}

/** The number of lines that must get through before a fault and after it. */
export const enough = 400;

/** The lines that a query saw. They are right from `least`, the lines acknowledged before it, to `most`, the lines sent until its end. */
export interface Sight {
  readonly seen: number;
  readonly least: number;
  readonly most: number;
}

/** An agent that pushes numbered lines and repeats each push until it is acknowledged, with queries that find the lines. */
export class NumberedLines {
  readonly #url: string;
  readonly #options: NumberedLinesOptions;
  readonly #tenant: Readonly<Record<string, string>>;
  readonly #startNs = BigInt(Date.now()) * 1_000_000n;
  #sent = 0;
  #acknowledged = 0;
  #isStopped = false;
  #waiting: { wanted: number; resolve: () => void }[] = [];
  #writing: Promise<void> | undefined;
  #lastFailure = "";
  /** The number of pushes that were not acknowledged. */
  retries = 0;

  constructor(url: string, options: NumberedLinesOptions = {}) {
    this.#url = `${url}/loki/api/v1`;
    this.#options = options;
    this.#tenant = { "x-scope-orgid": options.tenant ?? "numbered" };
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  start(): void {
    this.#writing = this.#write();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#writing;
  }

  /** Resolves when this many more lines are acknowledged. */
  async more(lines: number): Promise<void> {
    const wanted = this.#acknowledged + lines;
    await new Promise<void>((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** Counts the lines by a metric query; undefined when the query failed or has a warning. */
  async count(): Promise<Sight | undefined> {
    const least = this.#acknowledged;
    const query = 'sum(count_over_time({job="numbered"}[1h]))';
    const answer = await this.#get("query", { query, time: this.#at(Number.MAX_SAFE_INTEGER) });
    if (answer === undefined) return undefined;
    const [vector] = answer.data.result as { value: [number, string] }[];
    return { seen: Number(vector?.value[1] ?? 0), least, most: this.#sent };
  }

  /** Counts until there is an answer. A query may fail while a service comes back; the time limit of the test ends the attempts. */
  async surelyCount(): Promise<Sight> {
    for (;;) {
      const sight = await this.count();
      if (sight !== undefined) return sight;
    }
  }

  /** Causes a fault under load; resolves with the wrong ones among the counts before, during and after it. */
  async wrongCounts(fault: () => Promise<void>): Promise<Sight[]> {
    const sights: Sight[] = [];
    let isOver = false;
    await this.more(enough);
    sights.push(await this.surelyCount());
    const counting = (async () => {
      while (!isOver) {
        const sight = await this.count();
        if (sight !== undefined) sights.push(sight);
        await pause(countPauseMs);
      }
    })();
    try {
      await fault();
      await this.more(enough);
    } finally {
      isOver = true;
      await counting;
    }
    sights.push(await this.surelyCount());
    return sights.filter(({ seen, least, most }) => seen < least || seen > most);
  }

  /** The numbers of all lines that log queries find, ascending; rejects when a query fails or has a warning. */
  async numbers(): Promise<number[]> {
    const found: number[] = [];
    for (let from = 0; from < this.#sent; from += maxLines) {
      const answer = await this.#get("query_range", {
        query: '{job="numbered"}',
        start: this.#at(from),
        end: this.#at(from + maxLines),
        limit: String(maxLines),
      });
      if (answer === undefined) throw new Error(`a log query failed: ${this.#lastFailure}`);
      const rows = answer.data.result as { values: [string, string][] }[];
      for (const { values } of rows)
        for (const [, line] of values) found.push(Number(line.split(" ")[1]));
    }
    return found.sort((a, b) => a - b);
  }

  /** The time of a line in ns: each line is a microsecond later than the one before. */
  #at(line: number): string {
    if (line === Number.MAX_SAFE_INTEGER) return String(BigInt(Date.now() + 60_000) * 1_000_000n);
    return String(this.#startNs + BigInt(line) * 1000n);
  }

  async #write(): Promise<void> {
    while (!this.#isStopped) {
      const first = this.#sent;
      this.#sent += linesPerPush;
      const body = JSON.stringify({ streams: this.#streams(first) });
      while (!(await this.#push(body))) {
        this.retries++;
        await pause(retryMs);
      }
      this.#acknowledged = this.#sent;
      const due = this.#waiting.filter(({ wanted }) => wanted <= this.#acknowledged);
      this.#waiting = this.#waiting.filter((one) => !due.includes(one));
      for (const { resolve } of due) resolve();
      const { pauseMs = 0 } = this.#options;
      if (pauseMs > 0) await pause(pauseMs);
    }
  }

  #streams(first: number) {
    return Array.from({ length: streams }, (_, stream) => ({
      stream: { job: "numbered", stream: String(stream) },
      values: Array.from({ length: linesPerPush / streams }, (_, i) => {
        const line = first + i * streams + stream;
        return [this.#at(line), `line ${line}`];
      }),
    }));
  }

  async #push(body: string): Promise<boolean> {
    const headers = { ...this.#tenant, "content-type": "application/json" };
    const signal = AbortSignal.timeout(pushTimeoutMs);
    const begun = performance.now();
    let failure: string | undefined;
    try {
      const answer = await fetch(`${this.#url}/push`, { method: "POST", headers, body, signal });
      const text = await answer.text();
      if (answer.status !== 204) failure = `${answer.status} ${text.trim()}`;
    } catch (error) {
      failure = String(error);
    }
    this.#options.onPush?.(performance.now() - begun, failure);
    return failure === undefined;
  }

  /** Resolves with undefined when the query failed or has a warning. */
  async #get(path: string, params: Record<string, string>): Promise<Answer | undefined> {
    const query = new URLSearchParams(params);
    const url = `${this.#url}/${path}?${query}`;
    const signal = AbortSignal.timeout(queryTimeoutMs);
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(url, { headers: this.#tenant, signal });
      text = await answer.text();
    } catch (error) {
      if (this.#options.gatewayMayEnd !== true) throw error;
      return await this.#noAnswer(String(error));
    }
    if (answer.status >= 500) return await this.#noAnswer(`${answer.status} ${text.trim()}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    const body = JSON.parse(text) as Answer;
    // A full page is no failure: the caller asks for the next.
    const warning = body.warnings?.find((text) => !text.startsWith("the limit of "));
    return warning === undefined ? body : await this.#noAnswer(`warning: ${warning}`);
  }

  /** Pauses, because the caller asks again. */
  async #noAnswer(failure: string): Promise<undefined> {
    this.#lastFailure = failure;
    this.#options.onFailedQuery?.(failure);
    await pause(retryMs);
    return undefined;
  }
}

interface Answer {
  readonly data: { readonly result: readonly unknown[] };
  readonly warnings?: readonly string[];
}
