import { randomUUID } from "node:crypto";
import { getJson, pushJson, queryStreams } from "../client.js";

/** The rows of one round. */
interface Round {
  readonly sent: Set<string>;
  readonly acknowledged: Set<string>;
  /** The rows that the first query after the kill found; undefined before. */
  stored: ReadonlySet<string> | undefined;
  /** Whether a request to delete the secrets was sent or acknowledged. */
  deletion: "none" | "sent" | "acknowledged";
}

/** The rounds that are compared line by line; the rows of older rounds are only counted. */
const wholeRounds = 3;

/**
 * The rows that a server must have although it is killed again and again: each acknowledged row once, no row that was not sent,
 * and no deleted row. Rows of round `n` have the label `round="n"`; deletions remove the rows with `secret` in them.
 */
export class KnownRows {
  readonly #rounds: Round[] = [];
  /** Rows that are past their retention: each may be there once. */
  readonly #expired = new Set<string>();

  begin(): void {
    const [sent, acknowledged] = [new Set<string>(), new Set<string>()];
    this.#rounds.push({ sent, acknowledged, stored: undefined, deletion: "none" });
  }

  /** Pushes rows of this round; rows that are not acknowledged may be stored or not. */
  async push(url: string, texts: readonly string[]): Promise<void> {
    const round = this.#round;
    const lines = texts.map((text) => `${text} ${randomUUID()}`);
    for (const line of lines) round.sent.add(line);
    const labels = { app: "load", round: String(this.#rounds.length - 1) };
    const status = await pushJson(url, labels, at(Date.now(), lines)).catch(() => 0);
    if (status === 204) for (const line of lines) round.acknowledged.add(line);
  }

  /** Pushes rows that are already past their retention. */
  async pushExpired(url: string, ageMs: number): Promise<void> {
    const lines = [randomUUID(), randomUUID()];
    for (const line of lines) this.#expired.add(line);
    await pushJson(url, { app: "old" }, at(Date.now() - ageMs, lines)).catch(() => 0);
  }

  /** Deletes the secrets of this round; the caller pushes no more of them. */
  async delete(url: string): Promise<void> {
    const round = this.#round;
    round.deletion = "sent";
    const query = `{round="${this.#rounds.length - 1}"} |= "secret"`;
    const start = new Date(Date.now() - 3_600_000).toISOString();
    const params = new URLSearchParams({ query, start });
    const asked = fetch(`${url}/loki/api/v1/delete?${params}`, { method: "POST" });
    if ((await asked.catch(() => undefined))?.status === 204) round.deletion = "acknowledged";
  }

  /** Describes what a server gets wrong; empty when all is right. */
  async check(url: string, whole = wholeRounds): Promise<string[]> {
    const wrong: string[] = [];
    const first = Math.max(0, this.#rounds.length - whole);
    const found = new Map<string, string[]>();
    const selector = `{app="load", round=~"${this.#numbersFrom(first).join("|")}"}`;
    for (const { stream, values } of await queryStreams(url, selector, { limit: "1000000" })) {
      const { round = "" } = stream;
      const lines = values.map(([, line]) => line);
      found.set(round, [...(found.get(round) ?? []), ...lines]);
    }
    for (const n of this.#numbersFrom(first))
      wrong.push(...this.#checkRound(n, found.get(String(n)) ?? []));
    wrong.push(...(await this.#checkCounts(url, first)), ...(await this.#checkExpired(url)));
    return wrong;
  }

  get #round(): Round {
    return this.#rounds.at(-1) as Round;
  }

  #numbersFrom(first: number): number[] {
    return this.#rounds.map((_, n) => n).slice(first);
  }

  #checkRound(n: number, lines: readonly string[]): string[] {
    const round = this.#rounds[n] as Round;
    const found = new Set(lines);
    const wrong: string[] = [];
    if (found.size !== lines.length) wrong.push(`${lines.length - found.size} rows twice`);
    const secrets = lines.filter((line) => line.startsWith("secret"));
    if (round.deletion === "acknowledged" && secrets.length > 0)
      wrong.push(`${secrets.length} deleted rows`);
    const mayLack = (line: string) => round.deletion !== "none" && line.startsWith("secret");
    const lost = [...(round.stored ?? round.acknowledged)].filter(
      (line) => !found.has(line) && !mayLack(line),
    );
    if (lost.length > 0) wrong.push(`${lost.length} rows lost, ${lost[0]}`);
    const strange = lines.filter((line) => !(round.stored ?? round.sent).has(line));
    if (strange.length > 0) wrong.push(`${strange.length} rows from nowhere, ${strange[0]}`);
    round.stored = found;
    return wrong.map((text) => `round ${n}: ${text}`);
  }

  /** Compares the number of rows of each round before `first`. */
  async #checkCounts(url: string, first: number): Promise<string[]> {
    const query = 'sum by (round) (count_over_time({app="load"}[1d]))';
    const answer = await getJson<{
      data: { result: { metric: { round: string }; value: [number, string] }[] };
    }>(url, "/loki/api/v1/query", { query });
    const { result } = answer.data;
    const counts = new Map(result.map(({ metric, value }) => [metric.round, Number(value[1])]));
    return this.#rounds.slice(0, first).flatMap(({ stored, deletion }, n) => {
      const got = counts.get(String(n)) ?? 0;
      const want = stored?.size ?? 0;
      const secrets = [...(stored ?? [])].filter((line) => line.startsWith("secret")).length;
      // The server may still carry out a request that it did not acknowledge.
      const isRight = got === want || (deletion === "sent" && got === want - secrets);
      return isRight ? [] : [`round ${n}: ${got} rows of ${want}`];
    });
  }

  async #checkExpired(url: string): Promise<string[]> {
    const start = String(BigInt(Date.now() - 5 * 86_400_000) * 1_000_000n);
    const streams = await queryStreams(url, '{app="old"}', { start, limit: "1000000" });
    const lines = streams.flatMap(({ values }) => values.map(([, line]) => line));
    const isRight = new Set(lines).size === lines.length;
    const strange = lines.some((line) => !this.#expired.has(line));
    return isRight && !strange ? [] : ["rows past their retention are twice, or from nowhere"];
  }
}

/** Lines with times that start at `ms` and are a nanosecond apart. */
function at(ms: number, lines: readonly string[]): (readonly [string, string])[] {
  return lines.map((line, i) => [String(BigInt(ms) * 1_000_000n + BigInt(i)), line] as const);
}
