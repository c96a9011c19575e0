import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Client } from "../client/client.js";
import { exits, Failure, type Io } from "../shell/command.js";
import { sizeText } from "../shell/progress.js";
import { parseDuration } from "../shell/times.js";
import type { LineSource, Row } from "./line-source.js";
import { type PushedStream, pushStreams } from "./push-streams.js";
import type { ReadLine } from "./read-lines.js";

export interface PusherWork {
  readonly flags: {
    readonly "batch-size": number;
    readonly "batch-wait": string;
    readonly retries: number;
    readonly quiet: boolean;
  };
  readonly io: Io;
  readonly places: Places;
}

interface StoredPlace {
  readonly inode: number;
  readonly offset: number;
  readonly lastNs?: string;
}

/** How far each file was pushed, in a file. */
export class Places {
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

/** A stream of which more rows may come. */
interface Stream extends PushedStream {
  readonly values: PushedStream["values"][number][];
}

/** Collects rows to requests, and sends one at a time. */
export class Pusher {
  readonly #client: Client;
  readonly #work: PusherWork;
  readonly #waitMs: number;
  #streams = new Map<string, Stream>();
  #bytes = 0;
  #places = new Map<string, StoredPlace>();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();
  #failure: unknown;
  readonly #counts = { lines: 0, bytes: 0, refusals: 0 };

  constructor(client: Client, work: PusherWork) {
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
      if (streams.length > 0) await this.#send(streams);
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

  async #send(streams: readonly PushedStream[]): Promise<void> {
    const { flags, io } = this.#work;
    const tell = (note: string) => {
      if (!flags.quiet) io.stderr.write(`${note}\n`);
    };
    for (const refusal of await pushStreams(this.#client, streams, {
      retries: flags.retries,
      tell,
    })) {
      this.#counts.refusals++;
      io.stderr.write(`${refusal}\n`);
    }
  }
}
