import { quote } from "@skald/model";
import { askFlags, rangeFlags, sourceFlags } from "../client/flags.js";
import { readQuery } from "../client/session.js";
import { withSession } from "../move/local.js";
import { goJson } from "../output/cells.js";
import { type AnyCommand, command, exits, flag } from "../shell/command.js";
import { sizeText } from "../shell/progress.js";
import { spanOf } from "../shell/times.js";
import { writeRows } from "./lists.js";

/** What the server answers; see `docs/http-api.md`. */
interface Explanation {
  readonly kind: "log" | "metric";
  readonly parts: readonly {
    readonly selector: string;
    readonly streams: number;
    readonly entries: number;
    readonly bytes: number;
    readonly segments: number;
    readonly blocks: number;
    readonly blocksToRead: number;
    readonly bytesToRead: number;
    readonly answeredBy: "headers" | "scan";
    readonly needles: readonly string[];
  }[];
  readonly cached: boolean;
  readonly exact: boolean;
  readonly refusedBy: string | null;
}

export const explain: AnyCommand = command({
  args: "[logql]",
  says: "Tells what a query would read, without running it: how much its streams hold, and how many blocks and bytes of that are left after filters and headers. A Loki cannot answer it. The exit code is 3 if a limit would refuse the query; -o jsonl writes the server's answer.",
  flags: {
    limit: flag.number("most lines of the answer", 30),
    forward: flag.boolean("the oldest lines first"),
    step: flag.text("the time between two points of a metric query", "", { shown: "DURATION" }),
    ...rangeFlags,
    ...sourceFlags,
    ...askFlags,
  },
  run: async (given, io) => {
    const asked = given.flags.stdin ? (given.args[0] ?? "") : await readQuery(given.args, io);
    return withSession(given, asked, io, async (session, { flags, query }) => {
      const { fromNs, toNs } = session.range(flags);
      const found = await session.client.json<Explanation>("/loki/api/v1/explain", {
        ...{ query, start: `${fromNs}`, end: `${toNs}`, limit: flags.limit || undefined },
        direction: flags.forward ? "forward" : "backward",
        step: spanOf("step", flags.step),
      });
      if (flags.output === "jsonl") await session.write(`${goJson(found)}\n`);
      else await writeRows(columns, found.parts.map(rowOf), flags, session);
      for (const note of notesOf(found)) session.note(note);
      if (found.refusedBy === null) return exits.done;
      io.stderr.write(`the server would refuse it: ${found.refusedBy}\n`);
      return exits.refused;
    });
  },
});

const columns = [
  ...["selector", "streams", "lines", "bytes", "segments", "blocks"],
  ...["blocks to read", "bytes to read"],
];

function rowOf(part: Explanation["parts"][number]): string[] {
  const { selector, streams, entries, bytes, segments, blocks, blocksToRead, bytesToRead } = part;
  return [
    ...[selector, `${streams}`, `${entries}`, sizeText(bytes), `${segments}`, `${blocks}`],
    ...[`${blocksToRead}`, sizeText(bytesToRead)],
  ];
}

function notesOf({ parts, cached, exact }: Explanation): string[] {
  const needles = [...new Set(parts.flatMap((part) => part.needles))];
  const fromHeaders = parts.length > 0 && parts.every((part) => part.answeredBy === "headers");
  return [
    ...(needles.length > 0
      ? [`filters of segments look for ${needles.map(quote).join(", ")}`]
      : []),
    ...(cached ? ["kept answers have all of it: nothing is read"] : []),
    ...(fromHeaders && !cached ? ["headers answer it: no block is read"] : []),
    ...(exact ? [] : ["at most: not all headers were looked at, or something spares it a part"]),
  ];
}
