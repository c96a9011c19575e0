import type { PatternIngester, PushRequest, SampledLines } from "@skald/contracts";
import { type Batch, detectedLevelName, levelInMetadata, levelNames } from "@skald/model";

export interface LineSamplerOptions {
  /** Who learns from lines of a stream; throws while there is nobody. */
  readonly learnerOf: (tenant: string, stream: string) => Pick<PatternIngester, "learn">;
  /** Lines of a tenant that are looked at each time; of more, each stands for several. */
  readonly maxLines: number;
  /** Longer lines are left out. */
  readonly maxLineBytes: number;
  readonly onError: (error: unknown) => void;
}

/** Pause in which lines are gathered. */
const gatherMs = 1000;
/** Whoever learns rests so many times as long as it works: it has a seventh of a core at most. */
const restPerWork = 6;
/** Bytes of lines of all tenants that may wait; what comes beyond is left out. */
const maxWaitingBytes = 64 * 1024 * 1024;
const neverStopped = new AbortController().signal;

/** Takes some of the lines that come in, and hands them to those who find patterns in them, now and then. */
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

  /** Looks at rows that were stored; copies what it keeps. */
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

  /** Hands over what was gathered. Resolves when it was looked at; what cannot be sent is forgotten. */
  async flush(): Promise<void> {
    const samples = this.#samples;
    this.#samples = new Map();
    this.#waitingBytes = 0;
    for (const sample of samples.values())
      for (const [learner, lines] of this.#shares(sample))
        await learner.learn(lines, { signal: neverStopped }).catch(this.#options.onError);
  }

  /** Hands over what is left, and takes no more. */
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

/** Knuth's multiplicative hash: what follows each other is spread evenly. */
const spread = 0x9e3779b1;

/** Lines of a tenant, evenly chosen, not more than so many: once there are as many, every second one goes. */
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

  /** Of so many rows one is wanted, and stands for them. */
  get stride(): number {
    return this.#stride;
  }

  get lineBytes(): number {
    return this.#lineBytes;
  }

  /** The first row of the next push that is wanted: elsewhere each time, so that no row of a regular push is always left out. */
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

  /** The lines by who gets those of a stream. */
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
