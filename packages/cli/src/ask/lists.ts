import { askFlags, rangeFlags, sourceFlags } from "../client/flags.js";
import { Session, wantsColour } from "../client/session.js";
import { withSession } from "../move/local.js";
import { alignRows, csvLine, goJson, logfmtLine } from "../output/cells.js";
import { type LabelSet, labelText } from "../output/entries.js";
import { formatMetric, type MetricResult } from "../output/metric-output.js";
import { type AnyCommand, command, exits, Failure, flag, type Values } from "../shell/command.js";
import { sizeText } from "../shell/progress.js";

const ranged = { ...rangeFlags, ...sourceFlags, ...askFlags } as const;

interface Data<T> {
  readonly data: T;
}

export const labels: AnyCommand = command({
  args: "[name]",
  says: "Lists the names of labels, or the values of one.",
  flags: {
    query: flag.text("only labels of these streams", "", { shown: "SELECTOR" }),
    counts: flag.boolean("the number of streams beside each value"),
    ...ranged,
  },
  run: (given, io) =>
    withSession(given, given.flags.query || undefined, io, async (session, { flags, query }) => {
      const [name] = given.args;
      const { fromNs, toNs } = session.range(flags);
      const range = { start: `${fromNs}`, end: `${toNs}` };
      if (name !== undefined && flags.counts) {
        const match = query ?? `{${name}=~".+"}`;
        const { data } = await session.client.json<Data<LabelSet[]>>("/loki/api/v1/series", {
          ...{ ...range, "match[]": match },
        });
        const counts = new Map<string, number>();
        for (const { [name]: value } of data)
          if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
        const rows = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
        await writeRows(
          [name, "streams"],
          rows.map(([value, count]) => [value, `${count}`]),
          flags,
          session,
        );
        return exits.done;
      }
      const path = name === undefined ? "labels" : `label/${encodeURIComponent(name)}/values`;
      const found = await session.client.json<Data<string[] | null>>(`/loki/api/v1/${path}`, {
        ...{ ...range, query },
      });
      const names = (found.data ?? []).map((one) => [one]);
      await writeRows([name ?? "label"], names, flags, session);
      return exits.done;
    }),
});

export const series: AnyCommand = command({
  args: "<selector>",
  says: "Lists streams; {} stands for all.",
  flags: {
    "analyze-labels": flag.boolean("counts the values of each label instead"),
    ...ranged,
  },
  run: (given, io) =>
    withSession(given, given.args[0], io, async (session, { flags, query: selector = "{}" }) => {
      const { fromNs, toNs } = session.range(flags);
      const params = { start: `${fromNs}`, end: `${toNs}`, "match[]": selector };
      const { data } = await session.client.json<Data<LabelSet[]>>("/loki/api/v1/series", params);
      if (flags["analyze-labels"]) await session.write(analyse(data));
      else if (isJson(flags)) await session.write(data.map((one) => `${goJson(one)}\n`).join(""));
      else await session.write(data.map((one) => `${labelText(one)}\n`).join(""));
      return exits.done;
    }),
});

/** How many values each label has, and in how many streams it is. */
function analyse(sets: readonly LabelSet[]): string {
  const found = new Map<string, { readonly values: Set<string>; streams: number }>();
  for (const set of sets)
    for (const [name, value] of Object.entries(set)) {
      const one = found.get(name) ?? { values: new Set(), streams: 0 };
      one.values.add(value);
      one.streams++;
      found.set(name, one);
    }
  const rows = [...found]
    .sort(([, a], [, b]) => b.values.size - a.values.size)
    .map(([name, { values, streams }]) => [name, values.size, streams] as const);
  const width = Math.max(...rows.map(([name]) => name.length), "Label Name".length);
  const line = (name: string, values: number | string, streams: number | string) =>
    `${name.padEnd(width)}  ${String(values).padEnd(13)}  ${streams}\n`;
  const head = `Total Streams:  ${sets.length}\nUnique Labels:  ${found.size}\n\n`;
  return (
    head +
    line("Label Name", "Unique Values", "Found In Streams") +
    rows.map((row) => line(...row)).join("")
  );
}

interface Field {
  readonly label: string;
  readonly type: string;
  readonly cardinality: number;
  readonly parsers?: readonly string[] | null;
}

const fieldsPath = "/loki/api/v1/detected_fields";
/** Fields that are asked for to find one. */
const fieldsMax = 1000;

export const fields: AnyCommand = command({
  args: "<logql> [name]",
  says: "Lists the fields that a sample of lines has, or the values of one.",
  flags: {
    limit: flag.number("most fields, or values", 100),
    "line-limit": flag.number("lines of the sample", 1000),
    step: flag.text("without meaning here; logcli has it", "", { shown: "DURATION" }),
    counts: flag.boolean("how many lines have each value, over the whole range"),
    ...ranged,
  },
  run: (given, io) =>
    withSession(given, given.args[0], io, async (session, { flags, query }) => {
      const [, name] = given.args;
      const { fromNs, toNs } = session.range(flags);
      const { limit, "line-limit": lines } = flags;
      if (flags.step !== "") session.note("--step has no meaning here");
      const params = { query, start: `${fromNs}`, end: `${toNs}`, limit, line_limit: lines };
      if (name !== undefined && flags.counts) {
        const rows = await countValues(name, params, session);
        await writeRows([name, "lines"], rows, flags, session);
        return exits.done;
      }
      if (name !== undefined) {
        const path = `/loki/api/v1/detected_field/${encodeURIComponent(name)}/values`;
        const { values } = await session.client.json<{ values?: string[] | null }>(path, params);
        const rows = (values ?? []).map((one) => [one]);
        await writeRows([name], rows, flags, session);
        return exits.done;
      }
      const found = await session.client.json<{ fields?: Field[] | null }>(fieldsPath, params);
      const all = [...(found.fields ?? [])].sort((a, b) => (a.label < b.label ? -1 : 1));
      if (isPlain(flags, session)) await session.write(all.map(fieldLine).join(""));
      else {
        const rows = all.map(({ label, type, cardinality, parsers }) => [
          ...[label, type, `${cardinality}`, (parsers ?? []).join(" ")],
        ]);
        await writeRows(["field", "type", "values", "parsers"], rows, flags, session);
      }
      return exits.done;
    }),
});

interface FieldQuery {
  readonly query: string | undefined;
  readonly start: string;
  readonly end: string;
  readonly limit: number;
}

/** The most frequent values of a field with their numbers of lines. A sample of lines says which parser finds the field. */
async function countValues(
  name: string,
  params: FieldQuery & { readonly line_limit: number },
  { client }: Session,
): Promise<string[][]> {
  const { query, start, end, limit } = params;
  const detected = { ...params, limit: fieldsMax };
  const found = await client.json<{ fields?: Field[] | null }>(fieldsPath, detected);
  const field = found.fields?.find(({ label }) => label === name);
  const parser = field?.parsers?.[0];
  const stage = parser === undefined ? "" : ` | ${parser}`;
  const ms = (BigInt(end) - BigInt(start)) / 1_000_000n;
  // A line that the parser cannot read would else be an error of the whole query.
  const lines = `${query}${stage} | ${name} != "" | drop __error__, __error_details__`;
  const { data } = await client.json<Data<MetricResult>>("/loki/api/v1/query", {
    query: `topk(${limit}, sum by (${name}) (count_over_time(${lines} [${ms}ms])))`,
    time: `${BigInt(end) - 1n}`,
  });
  if (data.resultType !== "vector") return [];
  const rows = data.result.map(({ metric, value }) => [metric[name] ?? "", value[1]]);
  return rows.sort((a, b) => Number(b[1]) - Number(a[1]) || (a[0]! < b[0]! ? -1 : 1));
}

/** A field as logcli writes it. */
function fieldLine({ label, type, cardinality }: Field): string {
  return `label: ${label}\t\ttype: ${type}\t\tcardinality: ${cardinality}\n`;
}

export const patterns: AnyCommand = command({
  args: "<selector>",
  says: "Lists patterns of lines with the number of lines that have each, the most frequent first.",
  flags: { limit: flag.number("most patterns; 0: all", 30), ...rangeFlags, ...askFlags },
  run: async ({ args: [query], flags }, io) => {
    const session = new Session(flags, io);
    const { fromNs, toNs } = session.range(flags);
    const params = { query, start: `${fromNs}`, end: `${toNs}` };
    const { data } = await session.client.json<
      Data<{ pattern: string; level?: string; samples: [number, number][] }[]>
    >("/loki/api/v1/patterns", params);
    const rows = data
      .map(({ pattern, level = "", samples }) => {
        return { count: samples.reduce((sum, [, count]) => sum + count, 0), level, pattern };
      })
      .sort((a, b) => b.count - a.count)
      .slice(0, flags.limit || undefined)
      .map(({ count, level, pattern }) => [`${count}`, level, pattern]);
    await writeRows(["lines", "level", "pattern"], rows, flags, session);
    return exits.done;
  },
});

interface Stats {
  readonly streams: number;
  readonly chunks: number;
  readonly entries: number;
  readonly bytes: number;
}

export const stats: AnyCommand = command({
  args: "<selector>",
  says: "Tells how much there is of a selector: bytes, streams, lines, and the chunks or segments that have them.",
  flags: { ...ranged },
  run: (given, io) =>
    withSession(given, given.args[0], io, async (session, { flags, query }) => {
      const { fromNs, toNs } = session.range(flags);
      const params = { query, start: `${fromNs}`, end: `${toNs}` };
      const found = await session.client.json<Stats>("/loki/api/v1/index/stats", params);
      const { bytes, chunks, streams, entries } = found;
      if (isJson(flags)) await session.write(`${goJson({ bytes, chunks, streams, entries })}\n`);
      else if (isPlain(flags, session))
        await session.write(
          `{\n  bytes: ${humanBytes(bytes)}\n  chunks: ${chunks}\n  streams: ${streams}\n  entries: ${entries}\n}\n`,
        );
      else {
        const row = [
          sizeText(bytes),
          ...[entries, streams, chunks].map((n) => n.toLocaleString("en")),
        ];
        await writeRows(["bytes", "lines", "streams", "chunks"], [row], flags, session);
      }
      return exits.done;
    }),
});

const volumeFlags = {
  by: flag.text("labels to group by; default: those of the selector", "", { shown: "NAMES" }),
  targetLabels: flag.list("the same, one by one, as logcli has it", { shown: "NAME" }),
  aggregateByLabels: flag.boolean("counts by names of labels, without their values"),
  limit: flag.number("most groups", 30),
  color: flag.text("when to use colours", "auto", { choices: ["auto", "always", "never"] }),
  ...ranged,
} as const;

export const volume: AnyCommand = command({
  args: "<selector>",
  says: "Tells the bytes of each group of streams, the largest first.",
  flags: volumeFlags,
  run: (given, io) =>
    withSession(given, given.args[0], io, (session, { flags, query: selector }) =>
      runVolume("volume", { selector }, flags, session),
    ),
});

export const volumeRange: AnyCommand = command({
  args: "<selector>",
  says: "Tells the bytes of each group of streams at each step.",
  flags: { ...volumeFlags, step: flag.text("the time of one step", "1h", { shown: "DURATION" }) },
  run: (given, io) =>
    withSession(given, given.args[0], io, (session, { flags, query: selector }) =>
      runVolume("volume_range", { selector, step: flags.step }, flags, session),
    ),
});

async function runVolume(
  endpoint: string,
  { selector, step }: { readonly selector: string | undefined; readonly step?: string },
  flags: Values<typeof volumeFlags>,
  session: Session,
): Promise<number> {
  const { io, zone, client } = session;
  const { fromNs, toNs } = session.range(flags);
  const names = [...flags.by.split(","), ...flags.targetLabels].filter((one) => one !== "");
  const { data } = await client.json<Data<MetricResult>>(`/loki/api/v1/index/${endpoint}`, {
    ...{ query: selector, start: `${fromNs}`, end: `${toNs}`, step, limit: flags.limit },
    targetLabels: names.length === 0 ? undefined : names.join(","),
    aggregateBy: flags.aggregateByLabels ? "labels" : "series",
  });
  const form = flags.output || (io.stdout.isTTY === true ? "pretty" : "default");
  const isColoured = wantsColour(flags.color, io);
  const columns = io.stdout.columns ?? 100;
  await session.write(await formatMetric(data, { form, zone, columns, isColoured }));
  return exits.done;
}

/** Whether the form is that of logcli. */
function isPlain({ output }: { readonly output: string }, { io }: Session): boolean {
  const form = output || (io.stdout.isTTY === true ? "pretty" : "default");
  return form === "default" || form === "raw";
}

function isJson({ output }: { readonly output: string }): boolean {
  return output === "jsonl";
}

/** Rows in the form that is asked for; one column needs no head but in CSV. */
export async function writeRows(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  { output }: { readonly output: string },
  session: Session,
): Promise<void> {
  const pairs = (row: readonly string[]) => row.map((cell, i) => [names[i]!, cell] as const);
  switch (output) {
    case "jsonl":
      return session.write(
        rows
          .map((row) => `${goJson(row.length === 1 ? row[0] : Object.fromEntries(pairs(row)))}\n`)
          .join(""),
      );
    case "csv":
      return session.write([names, ...rows].map(csvLine).join(""));
    case "logfmt":
      return session.write(rows.map((row) => logfmtLine(pairs(row))).join(""));
    case "table":
      return session.write(alignRows(names, rows));
    case "chart":
    case "parquet":
      throw new Failure("usage", `-o ${output} is for the answers of queries`);
    default:
      return session.write(
        names.length === 1 ? rows.map(([cell]) => `${cell}\n`).join("") : alignRows(names, rows),
      );
  }
}

/** `12MB`, `4.2MB`: powers of 1000, with a decimal below 10. */
function humanBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  const digits = unit > 0 && Math.round(value * 10) / 10 < 10 ? 1 : 0;
  return `${value.toFixed(digits)}${units[unit]}`;
}
