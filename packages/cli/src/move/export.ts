import {
  createWriteStream,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { askFlags, rangeFlags } from "../client/flags.js";
import { countLines } from "../client/log-pages.js";
import { readQuery, Session } from "../client/session.js";
import { csvLine, goJson } from "../output/cells.js";
import { type Entry, labelText } from "../output/entries.js";
import { ParquetLines } from "../output/parquet.js";
import { type AnyCommand, command, exits, Failure, flag, type Io } from "../shell/command.js";
import { Progress } from "../shell/progress.js";
import { formatTime, parseDuration, Zone } from "../shell/times.js";
import { rangeOfWork, type Slice, type SlicedWork } from "./slices.js";
import { linePages, openSlices, queriesOf, type StreamGroups } from "./stream-groups.js";

const forms = ["text", "jsonl", "csv", "parquet"] as const;
type Form = (typeof forms)[number];

const { output: _output, ...otherAskFlags } = askFlags;
const exportFlags = {
  output: flag.text("the file to write; .gz and .zst are packed", "", {
    short: "o",
    shown: "FILE",
  }),
  form: flag.text(
    "the form of the file; default: by its name, .log, .jsonl, .csv or .parquet",
    "",
    {
      choices: forms,
    },
  ),
  parallel: flag.number("how many slices of time are asked at once", 4),
  slice: flag.text("the time of one slice; default: by the range", "", { shown: "DURATION" }),
  batch: flag.number("most lines of one request", 5000),
  ...rangeFlags,
  ...otherAskFlags,
  retries: flag.number("how often a request is repeated that was not answered, or with 5xx", 10, {
    env: "CLIENT_RETRIES",
  }),
} as const;

export const exportLines: AnyCommand = command({
  args: "[logql]",
  says: "Writes all lines of a query to a file, the oldest first. A run that was ended goes on when it is started again: FILE.state and FILE.parts have what is done. At the end the lines are counted on both sides; the exit code is 5 if they differ.",
  flags: exportFlags,
  run: async ({ args, flags, isSet }, io) => {
    const path = flags.output;
    if (path === "") throw new Failure("usage", "name a file to write: -o lines.jsonl.gz");
    const query = await readQuery(args, io);
    const form = (flags.form || formOf(path)) as Form;
    if (form === "parquet" && /\.(gz|zst)$/.test(path))
      throw new Failure("usage", `${path}: Parquet is packed inside; leave the ending away`);
    const session = new Session(flags, io);
    const state = `${path}.state`;
    const known = isSet("from") || isSet("to") ? undefined : rangeOfWork(state);
    const { work, groups } = await openSlices(session.client, query, {
      path: state,
      work: `export ${form} ${session.client.connection.addr} ${query}`,
      range: known ?? session.range(flags),
      sliceNs: flags.slice === "" ? 0n : parseDuration("slice", flags.slice),
    });
    const target = new PartFile(path, form);
    const { parallel, batch } = flags;
    await download(work, { query, groups, target, session, parallel, batch });
    await target.join(work.slices, io);
    const count = work.count;
    const { fromNs, toNs } = work;
    work.forget();
    const counted = await countLines(session.client, { query, fromNs, toNs });
    session.note(`wrote ${count.toLocaleString("en")} lines to ${path}`);
    if (counted === count) return exits.done;
    io.stderr.write(
      `the server counts ${counted.toLocaleString("en")} lines in this range: they differ\n`,
    );
    return exits.partial;
  },
});

interface Download {
  readonly query: string;
  readonly groups: StreamGroups | undefined;
  readonly target: PartFile;
  readonly session: Session;
  readonly parallel: number;
  readonly batch: number;
}

async function download(work: SlicedWork, asked: Download) {
  const { target, session, parallel } = asked;
  const { slices } = work;
  const progress = new Progress(session.io.stderr, {
    ...{ bytes: undefined, parts: slices.length, partName: "slices" },
  });
  for (const slice of slices) if (work.isDone(slice)) progress.addPart(0);
  await work.run(parallel, async (slice) => {
    const entries = await readSlice(slice, asked);
    progress.addPart(await target.write(slice, entries));
    return entries.length;
  });
  if (!session.isQuiet) progress.finish();
}

/** The lines of a slice, the oldest first. */
async function readSlice(
  { fromNs, toNs }: Slice,
  { query, groups, session, batch }: Download,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  const asked = { query, fromNs, toNs, batch };
  for (const one of await queriesOf(groups, asked))
    for await (const page of linePages(session.client, { ...asked, query: one }))
      for (const entry of page.entries) entries.push(entry);
  return entries.sort((a, b) => Number(a.ns - b.ns));
}

/** The form that a name has: `x.csv.gz` is CSV. */
function formOf(path: string): Form {
  const name = path.replace(/\.(gz|zst)$/, "");
  const end = /\.(\w+)$/.exec(name)?.[1] ?? "";
  const known: Readonly<Record<string, Form>> = {
    jsonl: "jsonl",
    ndjson: "jsonl",
    csv: "csv",
    parquet: "parquet",
  };
  return known[end] ?? "text";
}

const gzip = promisify(zlib.gzip);
const utc = new Zone("UTC");

/** A file that is written in parts, which are joined at the end: parts of gzip and zstd follow each other as they are. */
class PartFile {
  readonly #path: string;
  readonly #form: Form;
  readonly #folder: string;

  constructor(path: string, form: Form) {
    this.#path = path;
    this.#form = form;
    this.#folder = `${path}.parts`;
    mkdirSync(this.#folder, { recursive: true });
  }

  /** Writes the lines of a slice; resolves with the size of their text. */
  async write({ index }: Slice, entries: readonly Entry[]): Promise<number> {
    const text = Buffer.from(entries.map((entry) => this.#line(entry)).join(""));
    const path = this.#part(index);
    writeFileSync(`${path}.new`, await this.#pack(text));
    renameSync(`${path}.new`, path);
    return text.length;
  }

  /** Makes the file of all parts, and deletes these. */
  async join(slices: readonly Slice[], { signal }: Io): Promise<void> {
    const whole = `${this.#path}.new`;
    if (this.#form === "parquet") await this.#joinParquet(slices, whole);
    else {
      const bytes = Readable.from(this.#parts(slices));
      const packed = this.#path.endsWith(".zst") ? bytes.pipe(zlib.createZstdCompress()) : bytes;
      await pipeline(packed, createWriteStream(whole), { signal });
    }
    renameSync(whole, this.#path);
    rmSync(this.#folder, { recursive: true });
  }

  /** The bytes of the file. Many programs read the first frame of a zstd file only, so its parts are packed again as one. */
  async *#parts(slices: readonly Slice[]): AsyncGenerator<Uint8Array> {
    const isZstd = this.#path.endsWith(".zst");
    const head = this.#form === "csv" ? Buffer.from(csvLine(csvHead)) : Buffer.alloc(0);
    if (head.length > 0) yield isZstd ? head : await this.#pack(head);
    for (const { index } of slices) {
      const bytes = readFileSync(this.#part(index));
      if (bytes.length > 0) yield isZstd ? zlib.zstdDecompressSync(bytes) : bytes;
    }
  }

  #part(index: number): string {
    return `${this.#folder}/${String(index).padStart(6, "0")}`;
  }

  #line({ ns, labels, line }: Entry): string {
    const time = formatTime(ns, utc);
    switch (this.#form) {
      case "text":
        return `${line.replace(/\n$/, "")}\n`;
      case "csv":
        return csvLine([time, labelText(labels), line]);
      case "jsonl":
        return `${goJson({ labels, line, timestamp: time })}\n`;
      case "parquet":
        return `${JSON.stringify([`${ns}`, labels, line])}\n`;
    }
  }

  async #pack(bytes: Buffer): Promise<Uint8Array> {
    if (this.#path.endsWith(".gz")) return gzip(bytes);
    if (!this.#path.endsWith(".zst")) return bytes;
    const { zstdCompress } = zlib;
    if (zstdCompress === undefined)
      throw new Failure("usage", `${this.#path}: this Node has no zstd; Node 22.15 has`);
    return promisify(zstdCompress)(bytes);
  }

  /** A row group of each slice that has lines. */
  async #joinParquet(slices: readonly Slice[], path: string): Promise<void> {
    const file = await ParquetLines.open(path);
    for (const { index } of slices) {
      const rows = readFileSync(this.#part(index), "utf8").split("\n").filter(Boolean);
      await file.add(
        rows.map((row) => {
          const [ns, labels, line] = JSON.parse(row) as [string, Record<string, string>, string];
          return { ns: BigInt(ns), labels, line };
        }),
      );
    }
    await file.finish();
  }
}

const csvHead = ["time", "labels", "line"];
