import { statSync } from "node:fs";
import { Client } from "../client/client.js";
import { connectionFlags, connectionOf } from "../client/settings.js";
import { type AnyCommand, command, Failure, flag, type Io, type Values } from "../shell/command.js";
import { Progress } from "../shell/progress.js";
import { formatNames } from "./line-formats.js";
import { LineSource } from "./line-source.js";
import { Places, Pusher } from "./pusher.js";
import { followFile, readFileLines, readLines } from "./read-lines.js";

const pushFlags = {
  label: flag.list("a label of all lines; may be repeated", { shown: "NAME=VALUE" }),
  "label-from": flag.list("a label from a field of each line; may be repeated", {
    shown: "[NAME=]FIELD",
  }),
  "metadata-from": flag.list("structured metadata from a field of each line; may be repeated", {
    shown: "[NAME=]FIELD",
  }),
  "time-field": flag.text("the field that has the time", "", { shown: "FIELD" }),
  format: flag.text("the format of lines", "auto", { choices: formatNames }),
  follow: flag.boolean("goes on with lines as they are written", { short: "F" }),
  state: flag.text("a file that has the places in files: the next run goes on there", "", {
    shown: "FILE",
  }),
  "batch-size": flag.number("bytes of lines of one request", 1024 * 1024),
  "batch-wait": flag.text("the longest time that a line waits for others", "1s", {
    shown: "DURATION",
  }),
  quiet: flag.boolean("no notes on stderr", { short: "q" }),
  ...connectionFlags,
  retries: flag.number(
    "how often a request is repeated that was not answered, or with 5xx or 429",
    20,
    {
      env: "CLIENT_RETRIES",
    },
  ),
} as const;

export const push: AnyCommand = command({
  args: "[files...]",
  says: "Stores lines of files, which may be .gz or .zst, or of stdin. Time and level are found in JSON, logfmt, syslog, CRI, Docker, journald, nginx, klog and dated lines; a line without a time has that of the one before, or of now. Each file has the label filename. The exit code is 5 if the server refused lines.",
  flags: pushFlags,
  run: async ({ args, flags }, io) => {
    const client = new Client(connectionOf(flags, io.env), io.signal);
    const places = new Places(flags.state);
    const pusher = new Pusher(client, { flags, io, places });
    if (args.length === 0) {
      const source = new LineSource(flags, { source: "stdin" });
      for await (const lines of readLines(io.stdin)) await pusher.add(source, lines);
    } else if (flags.follow) {
      const follow = async (path: string) => {
        const source = new LineSource(flags, { filename: path });
        const known = places.of(path);
        for await (const { lines, inode } of followFile(path, known, io.signal))
          await pusher.add(source, lines, { path, inode });
      };
      await Promise.all(args.map(follow));
    } else await pushFiles(args, { flags, io, places, pusher });
    return pusher.end();
  },
});

interface FileWork {
  readonly flags: Values<typeof pushFlags>;
  readonly io: Io;
  readonly places: Places;
  readonly pusher: Pusher;
}

async function pushFiles(paths: readonly string[], { flags, io, places, pusher }: FileWork) {
  const found = paths.map((path) => ({ path, ...fileAt(path) }));
  const bytes = found.reduce((sum, { size }) => sum + size, 0);
  const progress = new Progress(io.stderr, { bytes, parts: paths.length });
  for (const { path, ino, size } of found) {
    const known = places.of(path);
    const offset = known.inode === ino ? known.offset : 0;
    const source = new LineSource(flags, { filename: path }, known.lastNs);
    let before = offset;
    const isPacked = /\.(gz|zst)$/.test(path);
    if (!isPacked) progress.add(offset);
    for await (const lines of readFileLines(path, offset)) {
      await pusher.add(source, lines, { path, inode: ino });
      const { end } = lines.at(-1)!;
      if (!isPacked) progress.add(end - before);
      before = end;
    }
    progress.addPart(isPacked ? size : 0);
  }
  await pusher.flush();
  if (!flags.quiet) progress.finish();
}

function fileAt(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    throw new Failure("usage", (error as Error).message);
  }
}
