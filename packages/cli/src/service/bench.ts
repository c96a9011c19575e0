import { randomUUID } from "node:crypto";
import { Client } from "../client/client.js";
import { connectionFlags, connectionOf } from "../client/settings.js";
import { alignRows } from "../output/cells.js";
import { command, exits, Failure, flag } from "../shell/command.js";

const linesPerPush = 1000;
const maxLines = 10_000_000;
const streams = 10;

/** What is asked; `$S` is the selector of the lines of this run. */
const queries: Readonly<Record<string, { readonly query: string; readonly limit?: number }>> = {
  "newest 100": { query: "$S", limit: 100 },
  "one line": { query: '$S |= "request 77 "', limit: 100 },
  "no line": { query: '$S |= "no such text"', limit: 100 },
  "regular expression": { query: '$S |~ "request [0-9]+7 "', limit: 1000 },
  "field of JSON": { query: "$S | json | status >= 500", limit: 1000 },
  count: { query: "sum(count_over_time($S[1h]))" },
  "count by field": { query: "sum by (status) (count_over_time($S | json [1h]))" },
  quantile: { query: "quantile_over_time(0.99, $S | json | unwrap ms [1h]) by (job)" },
};

export const bench = command({
  args: "",
  says: `Pushes made-up lines to a server, runs queries over them, and prints how long each took. The lines stay: they have the labels
job="skald-bench" and run=ID. Times are those of this client, its network and the server together.`,
  flags: {
    ...connectionFlags,
    lines: flag.number("lines to push", 100_000),
    repeat: flag.number("how often each query is run", 5),
  },
  run: async ({ flags }, io) => {
    const { lines, repeat } = flags;
    if (!(lines >= 1 && lines <= maxLines)) throw new Failure("usage", `--lines: 1 to ${maxLines}`);
    if (!(repeat >= 1 && repeat <= 1000)) throw new Failure("usage", "--repeat: 1 to 1000");
    const client = new Client(connectionOf(flags, io.env), io.signal);
    const run = randomUUID();
    const pushed = await pushLines(client, run, lines);
    io.stdout.write(
      alignRows(
        ["pushed lines", "MB", "lines/s", "MB/s"],
        [
          [
            `${lines}`,
            ...[pushed.mb, lines / pushed.seconds, pushed.mb / pushed.seconds].map(tidy),
          ],
        ],
      ),
    );
    const rows: string[][] = [];
    for (const [name, { query, limit }] of Object.entries(queries)) {
      const selector = `{job="skald-bench",run="${run}"}`;
      const times: number[] = [];
      for (let i = 0; i < repeat; i++)
        times.push(await timeOf(client, query.replace("$S", selector), limit));
      times.sort((a, b) => a - b);
      const [least, middle, most] = [times[0], times[times.length >> 1], times.at(-1)];
      rows.push([name, ...[least, middle, most].map((ms) => tidy(ms ?? 0))]);
    }
    io.stdout.write(`\n${alignRows(["query", "least ms", "median ms", "most ms"], rows)}`);
    return exits.done;
  },
});

/** Pushes lines of now, push by push. */
async function pushLines(client: Client, run: string, lines: number) {
  const started = performance.now();
  let bytes = 0;
  for (let from = 0; from < lines; from += linesPerPush) {
    const values: [string, string][][] = Array.from({ length: streams }, () => []);
    const ns = BigInt(Date.now()) * 1_000_000n;
    for (let i = from; i < Math.min(lines, from + linesPerPush); i++) {
      const status = i % 50 === 0 ? 503 : 200;
      const level = status === 503 ? "error" : "info";
      const line = JSON.stringify({
        level,
        msg: `request ${i} done`,
        status,
        ms: (i * 7919) % 997,
      });
      bytes += line.length;
      values[i % streams]!.push([`${ns + BigInt(i - from)}`, line]);
    }
    const body = JSON.stringify({
      streams: values
        .map((own, i) => ({ stream: { job: "skald-bench", run, instance: `${i}` }, values: own }))
        .filter((stream) => stream.values.length > 0),
    });
    const headers = { "content-type": "application/json" };
    await client.call("/loki/api/v1/push", { method: "POST", headers, body });
  }
  return { seconds: (performance.now() - started) / 1000, mb: bytes / 1e6 };
}

/** How long a query takes until its answer was read, ms. */
async function timeOf(client: Client, query: string, limit: number | undefined): Promise<number> {
  const started = performance.now();
  const path = `/loki/api/v1/query${limit === undefined ? "" : "_range"}`;
  await client.json(path, { query, limit });
  return performance.now() - started;
}

function tidy(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}
