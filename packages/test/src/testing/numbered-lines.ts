/** Streams that the lines are dealt out to. */
const streams = 8;
const linesPerPush = 40;
const tenant = { "x-scope-orgid": "numbered" };
const maxLines = 5000;

/** What a query saw, and what it had to see: lines acknowledged before it began, and sent before it ended. */
export interface Sight {
  readonly seen: number;
  readonly least: number;
  readonly most: number;
}

/** An agent that pushes numbered lines, each push again and again until it is acknowledged, and a reader of them. */
export class NumberedLines {
  readonly #url: string;
  readonly #startNs = BigInt(Date.now()) * 1_000_000n;
  #sent = 0;
  #acknowledged = 0;
  #isStopped = false;
  #waiting: { wanted: number; resolve: () => void }[] = [];
  #writing: Promise<void> | undefined;
  /** Pushes that were answered with something else than 204, or not at all. */
  retries = 0;

  constructor(url: string) {
    this.#url = `${url}/loki/api/v1`;
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

  /** Resolves when so many lines more were acknowledged. */
  async more(lines: number): Promise<void> {
    const wanted = this.#acknowledged + lines;
    await new Promise<void>((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** Counts by a metric query. Undefined where the answer says that it is none. */
  async count(): Promise<Sight | undefined> {
    const least = this.#acknowledged;
    const query = 'sum(count_over_time({job="numbered"}[1h]))';
    const answer = await this.#get("query", { query, time: this.#at(Number.MAX_SAFE_INTEGER) });
    if (answer === undefined) return undefined;
    const [vector] = answer.data.result as { value: [number, string] }[];
    return { seen: Number(vector?.value[1] ?? 0), least, most: this.#sent };
  }

  /** The numbers of all lines, ascending, as log queries show them. */
  async numbers(): Promise<number[]> {
    const found: number[] = [];
    for (let from = 0; from < this.#sent; from += maxLines) {
      const answer = await this.#get("query_range", {
        query: '{job="numbered"}',
        start: this.#at(from),
        end: this.#at(from + maxLines),
        limit: String(maxLines),
      });
      if (answer === undefined) throw new Error("a log query failed");
      const rows = answer.data.result as { values: [string, string][] }[];
      for (const { values } of rows)
        for (const [, line] of values) found.push(Number(line.split(" ")[1]));
    }
    return found.sort((a, b) => a - b);
  }

  /** The time of a line: a microsecond after the one before. */
  #at(line: number): string {
    if (line === Number.MAX_SAFE_INTEGER) return String(BigInt(Date.now() + 60_000) * 1_000_000n);
    return String(this.#startNs + BigInt(line) * 1000n);
  }

  async #write(): Promise<void> {
    while (!this.#isStopped) {
      const first = this.#sent;
      this.#sent += linesPerPush;
      const body = JSON.stringify({ streams: this.#streams(first) });
      while (!(await this.#push(body))) this.retries++;
      this.#acknowledged = this.#sent;
      const due = this.#waiting.filter(({ wanted }) => wanted <= this.#acknowledged);
      this.#waiting = this.#waiting.filter((one) => !due.includes(one));
      for (const { resolve } of due) resolve();
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
    const headers = { ...tenant, "content-type": "application/json" };
    try {
      const answer = await fetch(`${this.#url}/push`, { method: "POST", headers, body });
      await answer.arrayBuffer();
      return answer.status === 204;
    } catch {
      return false;
    }
  }

  async #get(path: string, params: Record<string, string>): Promise<Answer | undefined> {
    const query = new URLSearchParams(params);
    const answer = await fetch(`${this.#url}/${path}?${query}`, { headers: tenant });
    if (answer.status >= 500) return undefined;
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    const body = (await answer.json()) as Answer;
    return (body.warnings ?? []).length > 0 ? undefined : body;
  }
}

interface Answer {
  readonly data: { readonly result: readonly unknown[] };
  readonly warnings?: readonly string[];
}
