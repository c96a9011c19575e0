import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { Client } from "../client/client.js";
import { connectionFlags, connectionOf } from "../client/settings.js";
import {
  type AnyCommand,
  command,
  exits,
  Failure,
  flag,
  type Io,
  type Values,
} from "../shell/command.js";
import { Progress, sizeText } from "../shell/progress.js";
import { parseDuration } from "../shell/times.js";
import { formatNames, LineParser, parseLogTime } from "./line-formats.js";
import { followFile, type ReadLine, readFileLines, readLines } from "./read-lines.js";

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

/** The part of a push that one line makes. */
interface Row {
  readonly labels: Readonly<Record<string, string>>;
  readonly ns: bigint;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Turns lines of one file into rows. Lines of one time are 1 ns apart, so that equal ones are not taken for one. */
class LineSource {
  readonly #flags: Values<typeof pushFlags>;
  readonly #parser: LineParser;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #labelsFrom: readonly (readonly [string, string])[];
  readonly #metadataFrom: readonly (readonly [string, string])[];
  /** The time of the last line as it was written, and as it was pushed. */
  #written: bigint | undefined;
  #last = 0n;
  /** The start of a line that goes on. */
  #partial = "";

  constructor(
    flags: Values<typeof pushFlags>,
    labels: Readonly<Record<string, string>>,
    lastNs: string | undefined = undefined,
  ) {
    this.#flags = flags;
    this.#parser = new LineParser(flags.format);
    this.#labels = { ...labels, ...Object.fromEntries(flags.label.map(pairOf)) };
    this.#labelsFrom = flags["label-from"].map(nameAndField);
    this.#metadataFrom = flags["metadata-from"].map(nameAndField);
    if (lastNs === undefined) return;
    const [written = "0", last = "0"] = lastNs.split("+");
    this.#written = BigInt(written);
    this.#last = BigInt(last);
  }

  /** Where the times of lines are, for the next run. */
  get lastNs(): string {
    return `${this.#written ?? 0n}+${this.#last}`;
  }

  /** The row of a line; undefined for a blank one, and for one that goes on. */
  row(text: string): Row | undefined {
    if (text.trim() === "") return undefined;
    const parsed = this.#parser.parse(text, Date.now());
    if (parsed.isPartial === true && this.#partial.length < 1024 * 1024) {
      this.#partial += parsed.line;
      return undefined;
    }
    const line = this.#partial + parsed.line;
    this.#partial = "";
    const named = this.#flags["time-field"];
    const own = named === "" ? undefined : parseLogTime(parsed.field(named) ?? "");
    const found = own ?? parsed.ns;
    const written = found ?? this.#written ?? BigInt(Date.now()) * 1_000_000n;
    const isSame = written === this.#written;
    this.#last = isSame ? this.#last + 1n : written;
    this.#written = written;
    return {
      labels: { ...this.#labels, ...pick(this.#labelsFrom, parsed.field) },
      ns: this.#last,
      line,
      metadata: { ...parsed.metadata, ...pick(this.#metadataFrom, parsed.field) },
    };
  }
}

function pairOf(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Failure("usage", `--label: ${text} is not NAME=VALUE`);
  return [name, value];
}

function nameAndField(text: string): [string, string] {
  const [name = "", field] = text.split("=");
  return [field === undefined ? name.replace(/[^\w]/g, "_") : name, field ?? name];
}

function pick(
  wanted: readonly (readonly [string, string])[],
  field: (name: string) => string | undefined,
) {
  const found: Record<string, string> = {};
  for (const [name, path] of wanted) {
    const value = field(path);
    if (value !== undefined && value !== "") found[name] = value;
  }
  return found;
}

interface StoredPlace {
  readonly inode: number;
  readonly offset: number;
  readonly lastNs?: string;
}

/** How far each file was pushed, in a file. */
class Places {
  readonly #path: string;
  readonly #places: Record<string, StoredPlace>;

  constructor(path: string) {
    this.#path = path;
    this.#places = path === "" ? {} : readPlaces(path);
  }

  of(path: string): StoredPlace {
    return this.#places[path] ?? { inode: -1, offset: 0 };
  }

  /** Keeps places of lines that were stored. */
  keep(places: ReadonlyMap<string, StoredPlace>): void {
    if (this.#path === "" || places.size === 0) return;
    Object.assign(this.#places, Object.fromEntries(places));
    writeFileSync(`${this.#path}.new`, JSON.stringify(this.#places));
    renameSync(`${this.#path}.new`, this.#path);
  }
}

function readPlaces(path: string): Record<string, StoredPlace> {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Failure("usage", `--state: ${path}: ${(error as Error).message}`);
  }
}

interface Stream {
  readonly stream: Readonly<Record<string, string>>;
  readonly values: [string, string, Readonly<Record<string, string>>?][];
}

/** Collects rows to requests, and sends one at a time. */
class Pusher {
  readonly #client: Client;
  readonly #work: {
    readonly flags: Values<typeof pushFlags>;
    readonly io: Io;
    readonly places: Places;
  };
  readonly #waitMs: number;
  #streams = new Map<string, Stream>();
  #bytes = 0;
  #places = new Map<string, StoredPlace>();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();
  #failure: unknown;
  readonly #counts = { lines: 0, bytes: 0, refusals: 0 };

  constructor(
    client: Client,
    work: { readonly flags: Values<typeof pushFlags>; readonly io: Io; readonly places: Places },
  ) {
    this.#client = client;
    this.#work = work;
    this.#waitMs = Number(parseDuration("batch-wait", work.flags["batch-wait"]) / 1_000_000n);
  }

  /** Adds lines of a file; resolves once there is room for more. */
  async add(
    source: LineSource,
    lines: readonly ReadLine[],
    file?: { readonly path: string; readonly inode: number },
  ): Promise<void> {
    for (const { text, end } of lines) {
      const row = source.row(text);
      if (row !== undefined) this.#addRow(row);
      if (file !== undefined)
        this.#places.set(file.path, { inode: file.inode, offset: end, lastNs: source.lastNs });
      if (this.#bytes >= this.#work.flags["batch-size"]) await this.flush();
    }
    if (this.#failure !== undefined) throw this.#failure;
    this.#timer ??= setTimeout(() => {
      this.flush().catch((error) => {
        this.#failure = error;
      });
    }, this.#waitMs);
  }

  /** Sends what was collected; resolves once the server has it. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [streams, places] = [[...this.#streams.values()], this.#places];
    this.#counts.bytes += this.#bytes;
    this.#streams = new Map();
    this.#places = new Map();
    this.#bytes = 0;
    this.#sending = this.#sending.then(async () => {
      if (streams.length > 0) await this.#send(JSON.stringify({ streams }));
      this.#work.places.keep(places);
    });
    return this.#sending;
  }

  /** Sends the rest, and says what was pushed; resolves with the exit code. */
  async end(): Promise<number> {
    if (this.#failure !== undefined) throw this.#failure;
    await this.flush();
    const { io, flags } = this.#work;
    const { lines, bytes, refusals } = this.#counts;
    if (!flags.quiet)
      io.stderr.write(`pushed ${lines.toLocaleString("en")} lines, ${sizeText(bytes)}\n`);
    if (io.signal.aborted) return exits.interrupted;
    return refusals > 0 ? exits.partial : exits.done;
  }

  #addRow({ labels, ns, line, metadata }: Row): void {
    const key = JSON.stringify(labels);
    let stream = this.#streams.get(key);
    if (stream === undefined) {
      stream = { stream: labels, values: [] };
      this.#streams.set(key, stream);
    }
    const hasMetadata = Object.keys(metadata).length > 0;
    stream.values.push(hasMetadata ? [`${ns}`, line, metadata] : [`${ns}`, line]);
    this.#bytes += line.length;
    this.#counts.lines++;
  }

  async #send(body: string): Promise<void> {
    const { flags } = this.#work;
    try {
      await this.#client.call("/loki/api/v1/push", {
        ...{ method: "POST", body, retries: flags.retries },
        headers: { "content-type": "application/json" },
      });
    } catch (error) {
      // Of a request with bad rows the others are stored.
      const isPartial = error instanceof Failure && /answered 400: /.test(error.message);
      if (!isPartial) throw error;
      this.#counts.refusals++;
      this.#work.io.stderr.write(`${error.message}\n`);
    }
  }
}
