import type { FoundPatterns, Pattern, PatternsRequest, SampledLines } from "@skald/contracts";
import { compileMatchers, parseStreamText } from "@skald/model";
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

  constructor(options: PatternOptions) {
    this.#options = options;
    this.#tenants = new LRUCache({ max: options.maxTenants });
  }

  get options(): PatternOptions {
    return this.#options;
  }

  /** Learns from lines. In a JSON line it uses the first of the fields that is present. */
  learn(lines: SampledLines, names: readonly string[]): void {
    const { bytes, ends, levelOf, levels, seconds, streamOf, streams, weight } = lines;
    const fields = fieldNeedles(names);
    const miners = this.#minersOf(lines.tenant);
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let i = 0; i < ends.length; i++) {
      const end = ends[i]!;
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
