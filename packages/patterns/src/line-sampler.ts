import type { PatternIngester, PushRequest, SampledLines } from "@skald/contracts";
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
    const first = sample.nextStart();
    const level = levelReader(batch);
    let stream = 0;
    for (let row = first; row < batch.rowCount; row += sample.stride) {
      while (batch.streams[stream]!.rowEnd <= row) stream++;
      const length = batch.lineLength[row]!;
      if (length > maxLineBytes || this.#waitingBytes + length > maxWaitingBytes) continue;
      const start = batch.lineStart[row]!;
      const kept: SampleRow = {
        stream: batch.streams[stream]!.text,
        level: level(row),
        seconds: batch.seconds[row]!,
        line: new Uint8Array(batch.bytes.subarray(start, start + length)),
      };
      sample.add(kept);
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

  #shares(sample: TenantSample): Map<Pick<PatternIngester, "learn">, SampledLines> {
    try {
      return sample.shares((stream) => this.#options.learnerOf(sample.tenant, stream));
    } catch (error) {
      this.#options.onError(error);
      return new Map();
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

/** Reads the name of a row's detected level. */
function levelReader(batch: Batch): (row: number) => string {
  const { bytes, levels, metaName, metaStart, metaValueLength, metaValueStart } = batch;
  const wanted = batch.metaNames.indexOf(detectedLevelName);
  return (row) => {
    if (levels[row] !== levelInMetadata) return levelNames[levels[row]!] ?? "";
    for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
      if (metaName[pair] !== wanted) continue;
      const start = metaValueStart[pair]!;
      return Buffer.from(bytes.buffer, bytes.byteOffset + start, metaValueLength[pair]).toString();
    }
    return "";
  };
}

interface SampleRow {
  readonly stream: string;
  readonly level: string;
  readonly seconds: number;
  readonly line: Uint8Array;
}

/** Knuth's multiplicative hash, which spreads consecutive numbers evenly. */
const spread = 0x9e3779b1;

/** An even sample of a tenant's lines. When it is full, every second line is dropped. */
class TenantSample {
  readonly tenant: string;
  readonly #maxLines: number;
  #rows: SampleRow[] = [];
  #stride = 1;
  #pushes = 0;
  #lineBytes = 0;

  constructor(tenant: string, maxLines: number) {
    this.tenant = tenant;
    this.#maxLines = maxLines;
  }

  /** Each wanted row stands for this many rows. */
  get stride(): number {
    return this.#stride;
  }

  get lineBytes(): number {
    return this.#lineBytes;
  }

  /** The first wanted row of the next push. It varies, so that no row of a regular push is always left out. */
  nextStart(): number {
    return (Math.imul(++this.#pushes, spread) >>> 0) % this.#stride;
  }

  add(row: SampleRow): void {
    this.#rows.push(row);
    this.#lineBytes += row.line.length;
    if (this.#rows.length < this.#maxLines) return;
    this.#rows = this.#rows.filter((_, i) => i % 2 === 0);
    this.#lineBytes = this.#rows.reduce((sum, { line }) => sum + line.length, 0);
    this.#stride *= 2;
  }

  /** The lines, split by the owner of their stream. */
  shares<Owner>(ownerOf: (stream: string) => Owner): Map<Owner, SampledLines> {
    const owners = new Map<string, Owner>();
    const shares = new Map<Owner, SampleRow[]>();
    for (const row of this.#rows) {
      const owner = owners.get(row.stream) ?? ownerOf(row.stream);
      owners.set(row.stream, owner);
      const rows = shares.get(owner);
      if (rows === undefined) shares.set(owner, [row]);
      else rows.push(row);
    }
    return new Map([...shares].map(([owner, rows]) => [owner, this.#linesOf(rows)]));
  }

  #linesOf(rows: readonly SampleRow[]): SampledLines {
    const streams = new Map<string, number>();
    const levels = new Map<string, number>();
    let end = 0;
    return {
      tenant: this.tenant,
      weight: this.#stride,
      streamOf: Uint32Array.from(rows, ({ stream }) => placeIn(streams, stream)),
      levelOf: Uint32Array.from(rows, ({ level }) => placeIn(levels, level)),
      streams: [...streams.keys()],
      levels: [...levels.keys()],
      seconds: Float64Array.from(rows, ({ seconds }) => seconds),
      ends: Uint32Array.from(rows, ({ line }) => {
        end += line.length;
        return end;
      }),
      bytes: Buffer.concat(rows.map(({ line }) => line)),
    };
  }
}

function placeIn(table: Map<string, number>, text: string): number {
  const known = table.get(text);
  if (known !== undefined) return known;
  table.set(text, table.size);
  return table.size - 1;
}
