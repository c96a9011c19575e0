import { anyWord, type LinePart, Tokens } from "./tokenize.js";

interface MinerOptions {
  readonly maxClusters: number;
  /** Share of evictions among new clusters above which learning stops, because the lines have no pattern. */
  readonly maxEvictionRatio: number;
}

/** First words with clusters of their own, among lines of one shape. */
const maxChildren = 15;
/** Lines whose cluster is remembered. */
const maxRecent = 512;
/** New clusters before evictions count. */
const minLearnt = 1000;

const tokens = new Tokens();

/**
 * Finds the patterns of the lines of one stream and level, one line at a time (Drain: He, Zhu, Zheng, Lyu, "Drain: An Online
 * Log Parsing Approach with Fixed Depth Tree", ICWS 2017). Lines of the same shape, that is the same number of words and
 * the same signs between them, are told apart by their first word, then by how many words they share.
 */
export class Miner {
  readonly #options: MinerOptions;
  readonly #shapes = new Map<number, Map<number, Cluster[]>>();
  readonly #recent = new Map<number, Cluster>();
  readonly clusters = new Set<Cluster>();
  #clock = 0;
  #learnt = 0;
  #evicted = 0;

  constructor(options: MinerOptions) {
    this.#options = options;
  }

  /** Finds the cluster of a line and adds the line to it; undefined for a line without a pattern. */
  learn(line: Buffer, { from, to, isInner }: LinePart): Cluster | undefined {
    if (!tokens.read(line, from, to)) return undefined;
    const key = tokens.lineHash ^ Number(isInner);
    const known = this.#recent.get(key);
    if (known !== undefined && this.clusters.has(known)) {
      known.used = ++this.#clock;
      return known;
    }
    const leaf = this.#leafOf(shapeOf(tokens.count, tokens.gapHash, isInner), tokens.hashes[0]!);
    const cluster = bestOf(leaf) ?? this.#create(leaf, line, from, isInner);
    if (cluster === undefined) return undefined;
    cluster.merge(tokens);
    cluster.used = ++this.#clock;
    if (this.#recent.size >= maxRecent) this.#recent.clear();
    this.#recent.set(key, cluster);
    return cluster;
  }

  /** Adds a cluster that another miner had. */
  restore(cluster: Cluster, shape: number): void {
    this.#leafOf(shape, cluster.hashes[0]!).push(cluster);
    this.clusters.add(cluster);
    this.#shapeOf.set(cluster, shape);
  }

  shapeOf(cluster: Cluster): number {
    return this.#shapeOf.get(cluster) as number;
  }

  readonly #shapeOf = new Map<Cluster, number>();

  #leafOf(shape: number, first: number): Cluster[] {
    let children = this.#shapes.get(shape);
    if (children === undefined) {
      children = new Map();
      this.#shapes.set(shape, children);
    }
    const isKnown = children.has(first);
    const key = isKnown || children.size < maxChildren ? first : anyWord;
    const leaf = children.get(key) ?? [];
    children.set(key, leaf);
    return leaf;
  }

  #create(leaf: Cluster[], line: Buffer, from: number, isInner: boolean): Cluster | undefined {
    const { maxClusters, maxEvictionRatio } = this.#options;
    const isHopeless = this.#learnt > minLearnt && this.#evicted / this.#learnt > maxEvictionRatio;
    if (isHopeless) return undefined;
    if (this.clusters.size >= maxClusters) this.#evict();
    this.#learnt++;
    const cluster = Cluster.of(tokens, line, from, isInner);
    leaf.push(cluster);
    this.clusters.add(cluster);
    this.#shapeOf.set(cluster, shapeOf(tokens.count, tokens.gapHash, isInner));
    return cluster;
  }

  /** Drops the cluster that was used longest ago. */
  #evict(): void {
    let oldest: Cluster | undefined;
    for (const cluster of this.clusters) {
      if (oldest === undefined || cluster.used < oldest.used) oldest = cluster;
    }
    if (oldest === undefined) return;
    this.#evicted++;
    this.clusters.delete(oldest);
    const shape = this.#shapeOf.get(oldest) as number;
    this.#shapeOf.delete(oldest);
    const children = this.#shapes.get(shape);
    for (const [key, leaf] of children ?? []) {
      const at = leaf.indexOf(oldest);
      if (at >= 0) leaf.splice(at, 1);
      if (leaf.length === 0) children?.delete(key);
    }
    if (children?.size === 0) this.#shapes.delete(shape);
  }
}

function shapeOf(count: number, gapHash: number, isInner: boolean): number {
  return (Math.imul(gapHash, 31) + 2 * count + Number(isInner)) >>> 0;
}

/** The cluster that shares most words with the current line. */
function bestOf(leaf: readonly Cluster[]): Cluster | undefined {
  let best: Cluster | undefined;
  let most = -1;
  for (const cluster of leaf) {
    if (cluster.hashes.length !== tokens.count) continue;
    const same = cluster.similarity(tokens);
    if (same <= most) continue;
    most = same;
    best = cluster;
  }
  return best;
}

const wildcard = "<_>";

/** Similar lines: the words that they share, and their counts by time. */
export class Cluster {
  /** `anyWord` where they differ. */
  readonly hashes: Uint32Array;
  /** The text of each word. Words that vary are ignored. */
  readonly words: string[];
  /** Before each word, and behind the last. */
  readonly gaps: string[];
  readonly isInner: boolean;
  /** Starts of the time buckets with lines, seconds since the epoch, ascending, and the lines of each. */
  readonly times: number[] = [];
  readonly counts: number[] = [];
  /** The miner's line counter at the last line of this cluster. */
  used = 0;

  constructor(init: ClusterInit) {
    this.hashes = init.hashes;
    this.words = init.words;
    this.gaps = init.gaps;
    this.isInner = init.isInner;
  }

  static of(tokens: Tokens, line: Buffer, from: number, isInner: boolean): Cluster {
    const words: string[] = [];
    const gaps: string[] = [];
    let end = from;
    for (let i = 0; i < tokens.count; i++) {
      gaps.push(line.toString("utf8", end, tokens.starts[i]));
      end = tokens.ends[i]!;
      words.push(line.toString("utf8", tokens.starts[i], end));
    }
    gaps.push(line.toString("utf8", end, tokens.end));
    return new Cluster({ hashes: tokens.hashes.slice(0, tokens.count), words, gaps, isInner });
  }

  /** The pattern, in the syntax of the pattern filter. */
  get text(): string {
    let text = this.isInner ? wildcard : "";
    for (const [i, word] of this.words.entries()) {
      text += this.gaps[i] + (this.hashes[i] === anyWord ? wildcard : word);
    }
    text += this.gaps.at(-1) + (this.isInner ? wildcard : "");
    return text.replaceAll(/(?:<_>){2,}/g, wildcard);
  }

  /** The number of equal words in a line; -1 when there are too few for this cluster. */
  similarity({ hashes, count }: Tokens): number {
    const own = this.hashes;
    let fixed = 0;
    let same = 0;
    for (let i = 0; i < count; i++) {
      const hash = own[i]!;
      if (hash === anyWord) continue;
      fixed++;
      if (hash === hashes[i]) same++;
    }
    return fixed - same <= Math.floor(fixed * maxDifference) ? same : -1;
  }

  /** Adds a line. Words that differ become `anyWord`. */
  merge({ hashes, count }: Tokens): void {
    for (let i = 0; i < count; i++) if (this.hashes[i] !== hashes[i]) this.hashes[i] = anyWord;
  }

  /** Counts lines at a time, and drops buckets older than `oldest`. Returns how many buckets were added. */
  count(bucket: number, lines: number, oldest: number): number {
    const { times, counts } = this;
    const before = times.length;
    let old = 0;
    while (old < times.length && times[old]! < oldest) old++;
    if (old > 0) {
      times.splice(0, old);
      counts.splice(0, old);
    }
    let at = times.length;
    while (at > 0 && times[at - 1]! > bucket) at--;
    if (at > 0 && times[at - 1] === bucket) counts[at - 1]! += lines;
    else {
      times.splice(at, 0, bucket);
      counts.splice(at, 0, lines);
    }
    return times.length - before;
  }
}

interface ClusterInit {
  readonly hashes: Uint32Array;
  readonly words: string[];
  readonly gaps: string[];
  readonly isInner: boolean;
}

/** Share of the words of a pattern that may differ in a line: two of five, none of two. */
const maxDifference = 0.4;
