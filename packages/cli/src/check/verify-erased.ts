import { decodeRequestFile } from "@skald/compactor/requests";
import { type LogExpr, parseQuery } from "@skald/logql";
import {
  type Batch,
  compileMatchers,
  errorCodeOf,
  type Labels,
  nsPerMs,
  nsPerSecond,
  parseStreamText,
} from "@skald/model";
import { decodePatterns } from "@skald/patterns/file";
import { assembleBatch, decodeBody } from "@skald/push";
import { maskRows, scanMatches, segmentSource } from "@skald/scan";
import {
  cachedKeyOf,
  describeSegment,
  inspectWal,
  type PushBodyRecord,
  parseSegmentKey,
  type WalRecord,
} from "@skald/storage";
import type { Output } from "../shell/command.js";
import { Progress } from "../shell/progress.js";
import { kindOfName } from "./inspect.js";
import { type FoundFile, isGone, type Source } from "./source.js";
import { keyOf } from "./verify.js";

/** A place where something that a delete request names is left, or where that cannot be ruled out. */
export interface LeftPlace {
  readonly file: string;
  readonly message: string;
}

export interface ErasedVerdict {
  readonly request: string;
  readonly tenant: string;
  readonly query: string;
  readonly checkedFiles: number;
  readonly places: readonly LeftPlace[];
  /** What could not be checked, and why. */
  readonly unchecked: readonly string[];
  /** Facts that are no rows. */
  readonly notes: readonly string[];
}

export interface ErasedOptions {
  /** The id of the request. */
  readonly id: string;
  /** Its query, where its text was taken out. */
  readonly query?: string | undefined;
}

/**
 * Looks for what a delete request names in every file of the sources: segments, the log, patterns, the cache of segments, and
 * what was set aside as damaged. Give the data directory and the bucket together, because a cached segment is fine only while
 * the bucket has it. Throws when no source has the request.
 */
export async function verifyErased(
  sources: readonly Source[],
  { id, query }: ErasedOptions,
  out: Output,
): Promise<ErasedVerdict> {
  const listed: Listed[] = [];
  for (const source of sources)
    for (const file of await source.list()) listed.push({ source, file });
  const found = await findRequest(listed, id);
  const request = { ...found.request, query: query ?? found.request.query };
  if (found.request.redactedMs !== undefined && query === undefined)
    throw new Error(`the text of delete request ${id} was taken out; give it with -query='...'`);
  const bytes = listed.reduce((sum, { file }) => sum + file.sizeBytes, 0);
  const progress = new Progress(out, { bytes, parts: listed.length });
  const search = new ErasedSearch(request, found.isInStore ? keysOf(listed) : undefined);
  for (const one of listed) {
    await search.file(one);
    progress.addPart(one.file.sizeBytes);
    await new Promise(setImmediate);
  }
  progress.finish();
  const { notes, places, unchecked } = search;
  return {
    ...{ request: id, tenant: request.tenant, query: request.query },
    ...{ checkedFiles: listed.length, places, unchecked, notes },
  };
}

interface Listed {
  readonly source: Source;
  readonly file: FoundFile;
}

/** A delete request, as it is stored. */
interface Request {
  readonly id: string;
  readonly tenant: string;
  readonly query: string;
  readonly boundsMs: readonly number[];
  readonly createdMs: number;
  readonly redactedMs?: number;
}

/** Looks for the rows of one request. */
class ErasedSearch {
  readonly places: LeftPlace[] = [];
  readonly unchecked: string[] = [];
  readonly notes: string[] = [];
  readonly #request: Request;
  /** Keys of the segments in the store; undefined when it is not among the sources. */
  readonly #stored: ReadonlySet<string> | undefined;
  readonly #log: LogExpr;
  readonly #range: { readonly fromNs: bigint; readonly toNs: bigint };
  readonly #matches: (labels: Labels) => boolean;
  /** Texts that every line of the request has. */
  readonly #texts: readonly Buffer[];

  constructor(request: Request, stored: ReadonlySet<string> | undefined) {
    const { boundsMs, query } = request;
    const log = parseQuery(query);
    if (log.kind !== "log") throw new Error(`${query} is not a log query`);
    this.#request = request;
    this.#stored = stored;
    this.#log = log;
    this.#range = {
      fromNs: BigInt(boundsMs[0] as number) * nsPerMs,
      toNs: BigInt(boundsMs.at(-1) as number) * nsPerMs + 1n,
    };
    this.#matches = compileMatchers(log.matchers);
    this.#texts = textsOf(log);
  }

  async file({ source, file }: Listed): Promise<void> {
    try {
      await this.#look(source, file);
    } catch (error) {
      const { message } = error as Error;
      if (errorCodeOf(error) === "unavailable") throw error;
      if (errorCodeOf(error) === "newer_version") this.unchecked.push(message);
      else if (!isGone(error)) this.#tell(file, `it cannot be read, and may have rows: ${message}`);
    }
  }

  async #look(source: Source, file: FoundFile): Promise<void> {
    const { name } = file;
    const kind = kindOfName(name);
    if (kind === "segment") await this.#segment(source, file);
    else if (kind === "log") await this.#wal(source, file);
    else if (kind === "patterns") await this.#patterns(source, file);
    else if (name.endsWith(".slots")) await this.#cached(source, file);
    else if (isRequests(name)) await this.#requests(source, file);
    else if (name.endsWith(".corrupt"))
      this.#tell(file, "it is damaged, was set aside, and may have rows");
    else await this.#other(source, file);
  }

  async #segment(source: Source, file: FoundFile): Promise<void> {
    const named = parseSegmentKey(keyOf(file.name));
    if (named !== undefined && !this.#overlaps(named)) return;
    const reader = await source.open(file);
    try {
      const found = describeSegment(reader);
      if (!this.#overlaps(found)) return;
      const { id, tenant, minNs, maxNs, segment, sizeBytes } = found;
      const ref = {
        ...({ kind: "segment", id, tenant, minNs, maxNs, sizeBytes } as const),
        location: { kind: "file", path: file.name } as const,
      };
      const filter = {
        ...{ id: this.#request.id, ...this.#range, log: this.#log },
        nowNs: BigInt(this.#request.createdMs) * nsPerMs,
      };
      const task = { sources: [{ ref }], filters: [filter] };
      const open = () => segmentSource(segment);
      const { masks } = scanMatches(task, open, { check: () => undefined });
      const rows = masks.reduce((sum, mask) => sum + maskRows(mask), 0);
      if (rows > 0) this.#tell(file, rowsText(rows));
    } finally {
      reader.close();
    }
  }

  /** The rows of a log are compared by stream, time and the texts that the query asks for. */
  async #wal(source: Source, file: FoundFile): Promise<void> {
    const names = new Map<number, string>();
    let rows = 0;
    const onRecord = (record: WalRecord | "void") => {
      if (record === "void" || record.tenant !== this.#request.tenant) return;
      if (record.kind === "streams")
        for (const [i, number] of record.numbers.entries())
          names.set(number, record.texts[i] as string);
      else rows += this.#rowsOf(rangesOf(record, names));
    };
    const onFault = ({ offset, kind }: { offset: number; kind: string }) => {
      if (kind !== "torn") this.#tell(file, `${kind} at byte ${offset}; it may have rows`);
    };
    const bytes = await source.read(file);
    for (const _ of inspectWal(file.name, bytes, { onRecord, onFault })) await undefined;
    if (rows > 0) this.#tell(file, rowsText(rows));
  }

  #rowsOf({ batch, ranges }: LoggedRows): number {
    const { bytes, lineLength, lineStart, nanos, seconds } = batch;
    const { fromNs, toNs } = this.#range;
    let rows = 0;
    for (const { stream, rowFrom, rowTo } of ranges) {
      if (!this.#matches(parseStreamText(stream))) continue;
      for (let row = rowFrom; row < rowTo; row++) {
        const time = BigInt(seconds[row]!) * nsPerSecond + BigInt(nanos[row]!);
        if (time < fromNs || time >= toNs) continue;
        const start = lineStart[row]!;
        const line = Buffer.from(bytes.buffer, bytes.byteOffset + start, lineLength[row]);
        if (this.#texts.every((text) => line.includes(text))) rows++;
      }
    }
    return rows;
  }

  async #patterns(source: Source, file: FoundFile): Promise<void> {
    const { fromNs, toNs } = this.#range;
    const [from, to] = [Number(fromNs) / 1e9, Number(toNs) / 1e9];
    for (const miner of decodePatterns(file.name, await source.read(file))) {
      if (miner.tenant !== this.#request.tenant) continue;
      if (!this.#matches(parseStreamText(miner.stream))) continue;
      const left = miner.clusters.filter(({ gaps, times, words }) => {
        const text = Buffer.from(gaps.map((gap, i) => gap + (words[i] ?? "")).join(""));
        const isNamed = this.#texts.length > 0 && this.#texts.every((one) => text.includes(one));
        // Patterns that were found again have no line of that time.
        return isNamed || times.some((time) => time >= from && time + patternSeconds <= to);
      });
      if (left.length > 0)
        this.#tell(file, `${left.length} patterns of ${miner.stream} are older than the request`);
    }
  }

  async #cached(source: Source, file: FoundFile): Promise<void> {
    const reader = await source.open(file);
    try {
      const key = cachedKeyOf(reader);
      const named = key === undefined ? undefined : parseSegmentKey(keyOf(key));
      if (named !== undefined && !this.#overlaps(named)) return;
      if (named === undefined) this.#tell(file, "nobody knows what it is of");
      else if (this.#stored === undefined)
        this.unchecked.push(`${file.name}: give the bucket too, to check this cached segment`);
      else if (!this.#stored.has(keyOf(key as string)))
        this.#tell(file, `a part of ${key}, which left the store`);
    } finally {
      reader.close();
    }
  }

  async #requests(source: Source, file: FoundFile): Promise<void> {
    const { id, query } = this.#request;
    const text = (await source.read(file)).toString();
    const hasText = text.includes(JSON.stringify(query)) && text.includes(`"${id}"`);
    if (hasText)
      this.notes.push(
        `${file.name} has the text of the request until delete_request_redact_period`,
      );
  }

  /** Unfinished files, and those of other programs. */
  async #other(source: Source, file: FoundFile): Promise<void> {
    if (this.#texts.length === 0 || file.sizeBytes === 0 || file.sizeBytes > maxOtherBytes) return;
    const bytes = await source.read(file);
    if (this.#texts.every((text) => bytes.includes(text)))
      this.#tell(file, "it has the text that the request looks for");
  }

  #overlaps({ tenant, minNs, maxNs }: { tenant: string; minNs: bigint; maxNs: bigint }): boolean {
    const { fromNs, toNs } = this.#range;
    return tenant === this.#request.tenant && minNs < toNs && maxNs >= fromNs;
  }

  #tell({ name }: FoundFile, message: string): void {
    this.places.push({ file: name, message });
  }
}

/** The default width of the buckets of patterns. */
const patternSeconds = 10;
const maxOtherBytes = 64 * 1024 * 1024;

interface LoggedRows {
  readonly batch: Pick<Batch, "bytes" | "lineLength" | "lineStart" | "nanos" | "seconds">;
  readonly ranges: readonly { stream: string; rowFrom: number; rowTo: number }[];
}

function rangesOf(
  record: Exclude<WalRecord, { kind: "streams" }>,
  names: ReadonlyMap<number, string>,
): LoggedRows {
  const nameOf = (number: number): string => {
    const name = names.get(number);
    if (name === undefined) throw new Error(`it does not name stream ${number}`);
    return name;
  };
  if (record.kind === "push_body") return rowsOfBody(record, nameOf);
  const ranges = record.ranges.map((range) => ({ ...range, stream: nameOf(range.stream) }));
  return { batch: record.batch, ranges };
}

function rowsOfBody(
  { levels, ordinals, source, streams: numbers }: PushBodyRecord,
  nameOf: (number: number) => string,
): LoggedRows {
  const texts = Array.from(numbers, nameOf);
  const streams = texts.map((text, i) => ({
    ...{ ordinal: ordinals[i] as number, labels: parseStreamText(text), text },
  }));
  const batch = assembleBatch(decodeBody(source), { streams, dropped: source.dropped, levels });
  const ranges = batch.streams.map(({ rowStart, rowEnd }, i) => {
    return { stream: texts[i] as string, rowFrom: rowStart, rowTo: rowEnd };
  });
  return { batch, ranges };
}

/** The texts of the first line filters: every line of the query has them as they are. */
function textsOf({ stages }: LogExpr): Buffer[] {
  const texts: Buffer[] = [];
  for (const stage of stages) {
    if (stage.kind !== "line_filter") break;
    const [value, ...others] = stage.alternatives;
    if (stage.op === "|=" && value?.kind === "text" && others.length === 0 && value.value !== "")
      texts.push(Buffer.from(value.value));
  }
  return texts;
}

/** Finds a request in the store, or in the copy of a machine. Throws when it is not there. */
async function findRequest(
  listed: readonly Listed[],
  id: string,
): Promise<{ readonly request: Request; readonly isInStore: boolean }> {
  const isStored = ({ file }: Listed) =>
    file.name.endsWith(`-${id}.json`) && kindOfName(file.name) === "delete request";
  const stored = listed.filter(isStored);
  if (stored.length > 1) throw new Error(`several tenants have a delete request ${id}`);
  const [one] = stored;
  if (one !== undefined) {
    const body = decodeRequestFile(one.file.name, await one.source.read(one.file));
    return { request: body as Request, isInStore: true };
  }
  for (const { source, file } of listed.filter(({ file }) => isCopy(file.name))) {
    for (const line of (await source.read(file)).toString().split("\n").filter(Boolean)) {
      const body = decodeRequestFile(file.name, Buffer.from(line));
      const all = (Array.isArray(body) ? body : [body]) as { readonly request: Request }[];
      const found = all.find(({ request }) => request.id === id);
      if (found !== undefined) return { request: found.request, isInStore: false };
    }
  }
  throw new Error(`there is no delete request ${id}`);
}

function isRequests(name: string): boolean {
  return kindOfName(name) === "delete request" || isCopy(name);
}

function isCopy(name: string): boolean {
  return /(^|\/)delete-requests\.json$/.test(name);
}

function keysOf(listed: readonly Listed[]): ReadonlySet<string> {
  return new Set(listed.map(({ file }) => keyOf(file.name)));
}

function rowsText(rows: number): string {
  return rows === 1 ? "1 row of the request" : `${rows} rows of the request`;
}
