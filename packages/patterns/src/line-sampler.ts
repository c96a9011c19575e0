import type { PatternIngester, PushRequest, SampledLines } from "@skald/contracts";
import { type Batch, detectedLevelName, levelInMetadata, levelNames } from "@skald/model";
import { type SampleRow, TenantSample } from "./tenant-sample.js";

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
