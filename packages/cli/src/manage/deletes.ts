import { createInterface } from "node:readline/promises";
import { formatRfc3339 } from "@skald/model";
import { Client } from "../client/client.js";
import { askFlags, rangeFlags } from "../client/flags.js";
import { countLines, queryRange } from "../client/log-pages.js";
import { readQuery, Session } from "../client/session.js";
import { connectionOf } from "../client/settings.js";
import { alignRows, goJson } from "../output/cells.js";
import {
  type AnyCommand,
  command,
  exits,
  Failure,
  flag,
  type Io,
  type Values,
} from "../shell/command.js";
import { formatTime, Zone } from "../shell/times.js";

const addFlags = {
  "max-interval": flag.text("the longest part that a request with filters is split into", "", {
    shown: "DURATION",
  }),
  yes: flag.boolean("does not ask", { short: "y" }),
  ...rangeFlags,
  ...askFlags,
} as const;

export const deleteAdd: AnyCommand = command({
  args: "[logql]",
  says: "Shows which lines would go, asks, and then asks the server to delete them. Without a terminal it needs --yes.",
  flags: addFlags,
  run: ({ args, flags }, io) => add(args, flags, io),
});

export const deleteCreate: AnyCommand = command({
  args: "[logql]",
  says: "Asks the server to delete lines, without a question. It is logcli's name for skald delete add --yes.",
  flags: addFlags,
  run: ({ args, flags }, io) => add(args, { ...flags, yes: true }, io),
});

const shownLines = 5;

async function add(
  args: readonly string[],
  flags: Values<typeof addFlags>,
  io: Io,
): Promise<number> {
  const query = await readQuery(args, io);
  const session = new Session(flags, io);
  const { client } = session;
  const { fromNs, toNs } = session.range(flags);
  if (!flags.yes) {
    const count = await countLines(client, { query, fromNs, toNs });
    const text = `${count.toLocaleString("en")} lines from ${session.time(fromNs)} to ${session.time(toNs)} would go`;
    io.stderr.write(`${text}${count === 0 ? "" : ", the newest are:"}\n`);
    const pages = queryRange(client, {
      query,
      fromNs,
      toNs,
      limit: shownLines,
      batch: shownLines,
      isForward: false,
    });
    for await (const page of pages)
      if (page.kind === "lines")
        for (const { ns, line } of page.entries)
          io.stderr.write(`  ${session.time(ns)} ${line.trim()}\n`);
    if (!(await agrees(io))) return exits.found;
  }
  const params = {
    ...{ query, start: formatRfc3339(fromNs), end: formatRfc3339(toNs) },
    max_interval: flags["max-interval"] || undefined,
  };
  const answer = await client.call("/loki/api/v1/delete", { method: "POST", params });
  const id = answer.headers.get("x-delete-request-id");
  session.note(
    id === null ? "the request was taken" : `the request is ${id}; skald delete list shows it`,
  );
  return exits.done;
}

/** Whether the user types yes. */
async function agrees({ stdin, stderr, signal }: Io): Promise<boolean> {
  if ((stdin as { isTTY?: boolean }).isTTY !== true)
    throw new Failure("usage", "nothing was deleted: without a terminal give --yes");
  const lines = createInterface({ input: stdin, output: stderr as NodeJS.WritableStream });
  try {
    const answer = await lines.question("Delete them? Type yes: ", { signal });
    return answer.trim().toLowerCase() === "yes";
  } finally {
    lines.close();
  }
}

interface DeleteRequest {
  readonly request_id: string;
  readonly start_time: number;
  readonly end_time: number;
  readonly query: string;
  readonly status: string;
}

export const deleteList: AnyCommand = command({
  args: "",
  says: "Lists requests to delete lines, the newest first.",
  flags: { json: flag.boolean("writes JSON, as -o jsonl"), ...askFlags },
  run: async ({ flags }, io) => {
    const client = new Client(connectionOf(flags, io.env), io.signal);
    const found = await client.json<DeleteRequest[] | null>("/loki/api/v1/delete", {});
    const zone = new Zone(flags.timezone);
    const time = (value: number | string) => {
      const seconds = typeof value === "number" ? value : Date.parse(value) / 1000;
      return formatTime(BigInt(Math.round(seconds)) * 1_000_000_000n, zone, "rfc3339");
    };
    const rows = (found ?? []).map(({ request_id, start_time, end_time, query, status }) => [
      ...[request_id, status, time(start_time), time(end_time), query],
    ]);
    if (flags.json || flags.output === "jsonl")
      io.stdout.write((found ?? []).map((one) => `${goJson(one)}\n`).join(""));
    else if (rows.length > 0)
      io.stdout.write(alignRows(["request", "status", "from", "to", "query"], rows, ["request"]));
    return exits.done;
  },
});

export const deleteCancel: AnyCommand = command({
  args: "<request>",
  says: "Takes a request to delete lines back, if it was not processed.",
  flags: {
    force: flag.boolean("also one that was processed in part, or is too old to be taken back"),
    ...askFlags,
  },
  run: async ({ args: [request], flags }, io) => {
    const client = new Client(connectionOf(flags, io.env), io.signal);
    const params = { request_id: request, force: flags.force ? "true" : undefined };
    await client.call("/loki/api/v1/delete", { method: "DELETE", params });
    return exits.done;
  },
});
