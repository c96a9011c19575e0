import type { FoundPatterns, Pattern, PatternsRequest, SampledLines } from "@skald/contracts";
import { compileMatchers, type Matcher, parseStreamText } from "@skald/model";
import { LRUCache } from "lru-cache";
import { type Cluster, Miner } from "./miner.js";
import { fieldNeedles, messageOf } from "./tokenize.js";

export interface PatternOptions {
  /** Clusters of a stream and level. */
  readonly maxClusters: number;
  readonly maxEvictionRatio: number;
  /** Longer lines are ignored. */
  readonly maxLineBytes: number;
  /** How long samples are kept. */
  readonly retainMs: number;
  /** Width of the buckets that lines are counted in. */
  readonly sampleMs: number;
  /** Miners of a tenant. The one that learnt longest ago is dropped first. */
  readonly maxMinersPerTenant: number;
  /** Tenants with miners. */
  readonly maxTenants: number;
}

/** Rows that a client asked to delete, of which patterns must tell nothing. */
export interface ErasedRows {
  /** Names the request, within the tenant. */
  readonly id: string;
  /** The streams; undefined when they are not known any more: then all streams of the tenant count. */
  readonly matchers: readonly Matcher[] | undefined;
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** A miner and its stream and level. */
interface StreamMiner {
  readonly stream: string;
  readonly level: string;
  readonly miner: Miner;
}

const unknownLevel = "unknown";

/** The patterns of all tenants, in bounded memory. */
export class PatternStore {
  readonly #options: PatternOptions;
  readonly #tenants: LRUCache<string, LRUCache<string, StreamMiner>>;
  /** Ids of the requests that were applied, by tenant; only of those that it was last told of. */
  readonly #erased = new Map<string, ReadonlySet<string>>();

  constructor(options: PatternOptions) {
    this.#options = options;
    this.#tenants = new LRUCache({ max: options.maxTenants });
  }

  get options(): PatternOptions {
    return this.#options;
  }

  /**
   * Forgets the patterns of all streams that a request touches, because a pattern does not tell which lines it is from; they are
   * found again in later lines. Each request is applied once. Returns whether one was new.
   */
  erase(tenant: string, requests: readonly ErasedRows[]): boolean {
    const before = this.#erased.get(tenant);
    if (requests.length === 0 && before === undefined) return false;
    this.#erased.set(tenant, new Set(requests.map(({ id }) => id)));
    const miners = this.#tenants.peek(tenant) ?? new Map<string, StreamMiner>();
    const added = requests.filter(({ id }) => before?.has(id) !== true);
    const touches = added.map(({ matchers }) => compileMatchers(matchers ?? []));
    for (const [key, { stream }] of [...miners]) {
      const labels = parseStreamText(stream);
      if (touches.some((touch) => touch(labels))) miners.delete(key);
    }
    return added.length > 0;
  }

  /**
   * Learns from lines, except those that a request deletes. In a JSON line it uses the first of the fields that is present.
   */
  learn(lines: SampledLines, names: readonly string[], requests: readonly ErasedRows[] = []): void {
    const isErased = erasedIn(lines, requests);
    const { bytes, ends, levelOf, levels, seconds, streamOf, streams, weight } = lines;
    const fields = fieldNeedles(names);
    const miners = this.#minersOf(lines.tenant);
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let i = 0; i < ends.length; i++) {
      const end = ends[i]!;
      if (isErased?.(i) === true) {
        start = end;
        continue;
      }
      this.#learnLine(miners, {
        stream: streams[streamOf[i]!]!,
        level: levels[levelOf[i]!] || unknownLevel,
        line: buffer.subarray(start, end),
        seconds: seconds[i]!,
        ...{ fields, weight },
      });
      start = end;
    }
  }

  patterns(request: PatternsRequest): FoundPatterns {
    const { tenant, matchers, fromNs, toNs, stepSeconds } = request;
    const matches = compileMatchers(matchers);
    const range = { from: Number(fromNs) / 1e9, to: Number(toNs) / 1e9 };
    const found = new Map<
      string,
      { pattern: string; level: string; counts: Map<number, number> }
    >();
    let all = 0;
    for (const { stream, level, miner } of this.#tenants.get(tenant)?.values() ?? []) {
      if (!matches(parseStreamText(stream))) continue;
      for (const cluster of miner.clusters) {
        const pattern = cluster.text;
        const key = `${level}\n${pattern}`;
        const entry = found.get(key) ?? { pattern, level, counts: new Map<number, number>() };
        const lines = addSamples(entry.counts, cluster, range, stepSeconds);
        all += lines;
        if (lines > 0) found.set(key, entry);
      }
    }
    const patterns = [...found.values()].map(({ pattern, level, counts }) => {
      return { pattern, level, samples: [...counts].sort(([a], [b]) => a - b) };
    });
    return { patterns: mostFrequent(patterns), lines: all };
  }

  /** Every miner, those that learnt longest ago first. */
  *miners(): Generator<StreamMiner & { readonly tenant: string }> {
    for (const tenant of [...this.#tenants.keys()].reverse()) {
      const miners = [...(this.#tenants.peek(tenant)?.values() ?? [])].reverse();
      for (const miner of miners) yield { tenant, ...miner };
    }
  }

  /** Finds or makes the miner of a stream and level. */
  minerOf(tenant: string, stream: string, level: string): Miner {
    return this.#minerOf(this.#minersOf(tenant), stream, level);
  }

  #learnLine(
    miners: LRUCache<string, StreamMiner>,
    { stream, level, line, fields, seconds, weight }: LearntLine,
  ): void {
    const { maxLineBytes, sampleMs, retainMs } = this.#options;
    if (line.length > maxLineBytes) return;
    const part = messageOf(line, fields);
    if (part === undefined) return;
    const cluster = this.#minerOf(miners, stream, level).learn(line, part);
    if (cluster === undefined) return;
    const width = sampleMs / 1000;
    const newest = Math.max(seconds, cluster.times.at(-1) ?? 0);
    const oldest = newest - retainMs / 1000;
    const bucket = Math.floor(seconds / width) * width;
    if (bucket >= oldest) cluster.count(bucket, weight, oldest);
  }

  #minersOf(tenant: string): LRUCache<string, StreamMiner> {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const miners = new LRUCache<string, StreamMiner>({ max: this.#options.maxMinersPerTenant });
    this.#tenants.set(tenant, miners);
    return miners;
  }

  #minerOf(miners: LRUCache<string, StreamMiner>, stream: string, level: string): Miner {
    const key = `${level}\n${stream}`;
    const known = miners.get(key);
    if (known !== undefined) return known.miner;
    const miner = new Miner(this.#options);
    miners.set(key, { stream, level, miner });
    return miner;
  }
}

/** Tells which lines a request deletes; undefined when it deletes none. */
function erasedIn(
  { seconds, streamOf, streams }: SampledLines,
  requests: readonly ErasedRows[],
): ((line: number) => boolean) | undefined {
  if (requests.length === 0) return undefined;
  const touches = requests.map(({ matchers, fromNs, toNs }) => ({
    touch: compileMatchers(matchers ?? []),
    // A line is known by its second.
    ...{ from: Number(fromNs) / 1e9 - 1, to: Number(toNs) / 1e9 },
  }));
  const ranges = streams.map((stream) => {
    const labels = parseStreamText(stream);
    return touches.filter(({ touch }) => touch(labels));
  });
  if (ranges.every((some) => some.length === 0)) return undefined;
  return (line) => {
    const time = seconds[line]!;
    return ranges[streamOf[line]!]!.some(({ from, to }) => time > from && time < to);
  };
}

interface LearntLine {
  readonly stream: string;
  readonly level: string;
  readonly line: Buffer;
  readonly fields: readonly Buffer[];
  readonly seconds: number;
  /** The number of lines that it stands for. */
  readonly weight: number;
}

/** Adds the samples of a range by step. Returns the number of lines. */
function addSamples(
  counts: Map<number, number>,
  cluster: Cluster,
  { from, to }: { readonly from: number; readonly to: number },
  stepSeconds: number,
): number {
  let lines = 0;
  for (const [i, time] of cluster.times.entries()) {
    if (time < from || time >= to) continue;
    const count = cluster.counts[i]!;
    const at = Math.floor(time / stepSeconds) * stepSeconds;
    counts.set(at, (counts.get(at) ?? 0) + count);
    lines += count;
  }
  return lines;
}

/** Patterns with fewer lines are noise. */
const minHits = 30;
const maxPatterns = 300;

/** Merges answers about different streams. */
export function mergePatterns(found: readonly FoundPatterns[]): FoundPatterns {
  const merged = new Map<string, Pattern>();
  for (const pattern of found.flatMap(({ patterns }) => patterns)) {
    const key = `${pattern.level}\n${pattern.pattern}`;
    const known = merged.get(key);
    const samples = known === undefined ? pattern.samples : added(known, pattern);
    merged.set(key, { ...pattern, samples });
  }
  const lines = found.reduce((sum, one) => sum + one.lines, 0);
  return { patterns: mostFrequent([...merged.values()]), lines };
}

/** The patterns that are frequent enough, the most frequent first. */
function mostFrequent(patterns: readonly Pattern[]): Pattern[] {
  return patterns
    .map((pattern) => ({ pattern, hits: hitsOf(pattern) }))
    .filter(({ hits }) => hits >= minHits)
    .sort((a, b) => b.hits - a.hits)
    .slice(0, maxPatterns)
    .map(({ pattern }) => pattern);
}

function hitsOf({ samples }: Pattern): number {
  return samples.reduce((sum, [, count]) => sum + count, 0);
}

function added(a: Pattern, b: Pattern): Pattern["samples"] {
  const counts = new Map(a.samples);
  for (const [time, count] of b.samples) counts.set(time, (counts.get(time) ?? 0) + count);
  return [...counts].sort(([left], [right]) => left - right);
}
