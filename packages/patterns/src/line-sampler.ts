import type { PatternIngester, PushRequest, SampledLines } from "@skald/contracts";
import { copyBytes } from "@skald/kernels";
import { type Batch, detectedLevelName, levelInMetadata, levelNames } from "@skald/model";

export interface LineSamplerOptions {
  /** The pattern ingester of a stream. Throws while there is none. */
  readonly learnerOf: (tenant: string, stream: string) => Pick<PatternIngester, "learn">;
  /** Lines of a tenant to send each time. If there are more, each line stands for several. */
  readonly maxLines: number;
  /** Longer lines are left out. */
  readonly maxLineBytes: number;
  readonly onError: (error: unknown) => void;
}

/** Pause in which lines are gathered. */
const gatherMs = 1000;
/** The learner rests this many times as long as it works, so that it takes at most a seventh of a core. */
const restPerWork = 6;
/** Bytes of waiting lines of all tenants. Lines beyond it are left out. */
const maxWaitingBytes = 64 * 1024 * 1024;
const neverStopped = new AbortController().signal;

/** Samples incoming lines, and passes them to pattern ingesters from time to time. */
export class LineSampler {
  readonly #options: LineSamplerOptions;
  #samples = new Map<string, TenantSample>();
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: LineSamplerOptions) {
    this.#options = options;
  }

  /** Samples rows that were stored, and copies the lines that it keeps. */
  note({ tenant, batch }: PushRequest): void {
    if (this.#isClosed) return;
    const { maxLines, maxLineBytes } = this.#options;
    const sample = this.#samples.get(tenant) ?? new TenantSample(tenant, maxLines);
    this.#samples.set(tenant, sample);
    const before = sample.lineBytes;
    sample.makeRoom(batch.rowCount);
    const first = sample.nextStart();
    let at = -1;
    let stream = 0;
    for (let row = first; row < batch.rowCount; row += sample.stride) {
      const length = batch.lineLength[row]!;
      if (length > maxLineBytes || this.#waitingBytes + length > maxWaitingBytes) continue;
      if (at < 0 || batch.streams[at]!.rowEnd <= row) {
        do at++;
        while (batch.streams[at]!.rowEnd <= row);
        stream = sample.streamOf(batch.streams[at]!.text);
      }
      sample.add(batch, row, stream);
    }
    this.#waitingBytes += sample.lineBytes - before;
    this.#schedule(gatherMs);
  }

  /** Sends the gathered lines. Resolves when they are learnt. Lines that cannot be sent are dropped. */
  async flush(): Promise<void> {
    const samples = this.#samples;
    this.#samples = new Map();
    this.#waitingBytes = 0;
    for (const sample of samples.values())
      for (const [learner, lines] of this.#shares(sample))
        await learner.learn(lines, { signal: neverStopped }).catch(this.#options.onError);
  }

  /** Sends the rest, and takes no more lines. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#work;
    await this.flush();
  }

  #shares(sample: TenantSample) {
    try {
      return sample.shares((stream) => this.#options.learnerOf(sample.tenant, stream));
    } catch (error) {
      this.#options.onError(error);
      return [];
    }
  }

  #schedule(pauseMs: number): void {
    if (this.#timer !== undefined || this.#work !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const start = performance.now();
      this.#work = this.flush().finally(() => {
        this.#work = undefined;
        const restMs = (performance.now() - start) * restPerWork;
        if (this.#samples.size > 0) this.#schedule(Math.max(gatherMs, restMs));
      });
    }, pauseMs);
  }
}

/** Finds the text of a row's detected level. */
function foreignLevel(batch: Batch, row: number): string {
  const { bytes, metaName, metaStart, metaValueLength, metaValueStart } = batch;
  const wanted = batch.metaNames.indexOf(detectedLevelName);
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
    if (metaName[pair] !== wanted) continue;
    const start = metaValueStart[pair]!;
    return Buffer.from(bytes.buffer, bytes.byteOffset + start, metaValueLength[pair]).toString();
  }
  return "";
}

/** Knuth's multiplicative hash, which spreads consecutive numbers evenly. */
const spread = 0x9e3779b1;
/** An even sample of a tenant's lines, in columns. When there is no room, every second line is dropped. */
class TenantSample {
  readonly tenant: string;
  readonly #maxLines: number;
  readonly #streams = new Map<string, number>();
  readonly #levels = new Map<string, number>();
  #columns = new LineColumns();
  #stride = 1;
  #pushes = 0;

  constructor(tenant: string, maxLines: number) {
    this.tenant = tenant;
    this.#maxLines = maxLines;
  }

  /** Each wanted row stands for this many rows. */
  get stride(): number {
    return this.#stride;
  }

  get lineBytes(): number {
    return this.#columns.lineBytes;
  }

  /** The first wanted row of the next push. It varies, so that no row of a regular push is always left out. */
  nextStart(): number {
    return (Math.imul(++this.#pushes, spread) >>> 0) % this.#stride;
  }

  /** Drops lines until there is room for the wanted ones of `rows` rows. */
  makeRoom(rows: number): void {
    while (this.#columns.count + rows / this.#stride > this.#maxLines) {
      const kept = Uint32Array.from({ length: this.#columns.count >> 1 }, (_, i) => 2 * i);
      this.#columns = this.#columns.pick(kept);
      this.#stride *= 2;
    }
  }

  streamOf(text: string): number {
    return placeIn(this.#streams, text);
  }

  add(batch: Batch, row: number, stream: number): void {
    const from = batch.lineStart[row]!;
    const to = from + batch.lineLength[row]!;
    const code = batch.levels[row]!;
    const name = code === levelInMetadata ? foreignLevel(batch, row) : (levelNames[code] ?? "");
    const level = placeIn(this.#levels, name);
    this.#columns.add(batch.bytes, from, to, { stream, level, seconds: batch.seconds[row]! });
  }

  /** The lines, split by the owner of their stream, in pieces that one call can carry. */
  shares<Owner>(ownerOf: (stream: string) => Owner): (readonly [Owner, SampledLines])[] {
    const streams = [...this.#streams.keys()];
    const levels = [...this.#levels.keys()];
    const owners = streams.map(ownerOf);
    const head = { tenant: this.tenant, weight: this.#stride, levels };
    return [...new Set(owners)].flatMap((owner) => {
      // A share has only its own streams, numbered anew.
      const own = new Map<string, number>();
      const numbers = owners.map((one, i) =>
        one === owner ? placeIn(own, streams[i] as string) : 0,
      );
      const rows = this.#columns.rowsOf((stream) => owners[stream] === owner);
      const names = [...own.keys()];
      return this.#columns
        .piecesOf(rows)
        .map((piece) => [owner, { ...head, streams: names, ...piece.finish(numbers) }] as const);
    });
  }
}

/** A piece has lines of at most this size, or one line. */
const maxPieceBytes = 4 * 1024 * 1024;

/** Lines one behind the other, and what is known of each, in arrays that grow. */
class LineColumns {
  count = 0;
  #bytes: Uint8Array;
  #ends: Uint32Array;
  #streams: Uint32Array;
  #levels: Uint32Array;
  #seconds: Float64Array;

  constructor(lines = firstLines) {
    this.#bytes = new Uint8Array(firstBytes);
    this.#ends = new Uint32Array(lines);
    this.#streams = new Uint32Array(lines);
    this.#levels = new Uint32Array(lines);
    this.#seconds = new Float64Array(lines);
  }

  get lineBytes(): number {
    return this.#startOf(this.count);
  }

  /** Adds the line in the bytes `[from, to)`. */
  add(bytes: Uint8Array, from: number, to: number, facts: LineFacts): void {
    const at = this.count;
    const start = this.#startOf(at);
    const end = start + (to - from);
    if (at === this.#ends.length) this.#growLines();
    if (end > this.#bytes.length) this.#bytes = grown(this.#bytes, end);
    copyBytes(bytes, from, to, this.#bytes, start);
    this.#ends[at] = end;
    this.#streams[at] = facts.stream;
    this.#levels[at] = facts.level;
    this.#seconds[at] = facts.seconds;
    this.count++;
  }

  /** The lines of some streams. */
  rowsOf(isWanted: (stream: number) => boolean): Uint32Array {
    const rows = new Uint32Array(this.count);
    let count = 0;
    for (let row = 0; row < this.count; row++)
      if (isWanted(this.#streams[row]!)) rows[count++] = row;
    return rows.subarray(0, count);
  }

  /** Some lines in pieces of a bounded size; without a copy when that is everything in one. */
  piecesOf(rows: Uint32Array): LineColumns[] {
    if (rows.length === this.count && this.lineBytes <= maxPieceBytes)
      return this.count === 0 ? [] : [this];
    const pieces: LineColumns[] = [];
    for (let from = 0; from < rows.length; ) {
      let to = from;
      let bytes = 0;
      for (; to < rows.length; to++) {
        bytes += this.#ends[rows[to]!]! - this.#startOf(rows[to]!);
        if (bytes > maxPieceBytes && to > from) break;
      }
      pieces.push(this.pick(rows.subarray(from, to)));
      from = to;
    }
    return pieces;
  }

  /** Copies of some lines. */
  pick(rows: Uint32Array): LineColumns {
    const picked = new LineColumns(Math.max(firstLines, rows.length));
    for (const row of rows)
      picked.add(this.#bytes, this.#startOf(row), this.#ends[row]!, {
        ...{ stream: this.#streams[row]!, level: this.#levels[row]! },
        seconds: this.#seconds[row]!,
      });
    return picked;
  }

  /** The columns with streams by new numbers, each as long as it is: a thread gets copies of whole buffers. */
  finish(numbers: readonly number[]): Columns {
    const { count, lineBytes } = this;
    const streamOf = this.#streams.slice(0, count);
    for (let row = 0; row < count; row++) streamOf[row] = numbers[streamOf[row]!]!;
    return {
      streamOf,
      levelOf: this.#levels.slice(0, count),
      seconds: this.#seconds.slice(0, count),
      ends: this.#ends.slice(0, count),
      bytes: this.#bytes.slice(0, lineBytes),
    };
  }

  #startOf(row: number): number {
    return row === 0 ? 0 : this.#ends[row - 1]!;
  }

  #growLines(): void {
    const length = 2 * this.#ends.length;
    this.#ends = grown(this.#ends, length);
    this.#streams = grown(this.#streams, length);
    this.#levels = grown(this.#levels, length);
    this.#seconds = grown(this.#seconds, length);
  }
}

type Columns = Pick<SampledLines, "streamOf" | "levelOf" | "seconds" | "ends" | "bytes">;

interface LineFacts {
  readonly stream: number;
  readonly level: number;
  readonly seconds: number;
}

/** What lines begin with; it grows by doubling. */
const firstLines = 256;
const firstBytes = 32 * 1024;

/** A copy with room for `least` values at least. */
function grown<T extends Uint8Array | Uint32Array | Float64Array>(column: T, least: number): T {
  const Column = column.constructor as new (length: number) => T;
  const more = new Column(Math.max(least, 2 * column.length));
  more.set(column);
  return more;
}

function placeIn(table: Map<string, number>, text: string): number {
  const known = table.get(text);
  if (known !== undefined) return known;
  table.set(text, table.size);
  return table.size - 1;
}
