import { anyWord, type Tokens } from "./tokenize.js";

const wildcard = "<_>";

/** Lines that are alike: the words that they share, and how many there were when. */
export class Cluster {
  /** `anyWord` where they differ. */
  readonly hashes: Uint32Array;
  /** Of each word; what stands for any is not looked at. */
  readonly words: string[];
  /** Before each word, and behind the last. */
  readonly gaps: string[];
  readonly isInner: boolean;
  /** Starts of the time buckets with lines, seconds since the epoch, ascending, and the lines of each. */
  readonly times: number[] = [];
  readonly counts: number[] = [];
  /** Counts up with each line of the miner. */
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

  /** Words that are the same in a line; -1 when too few are for it to be one of these. */
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

  /** Takes a line in: where it differs is any word from now on. */
  merge({ hashes, count }: Tokens): void {
    for (let i = 0; i < count; i++) if (this.hashes[i] !== hashes[i]) this.hashes[i] = anyWord;
  }

  /** Counts lines at a time; drops what is older than `oldest`. Gives by how much the buckets have become more. */
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

export interface ClusterInit {
  readonly hashes: Uint32Array;
  readonly words: string[];
  readonly gaps: string[];
  readonly isInner: boolean;
}

/** Part of the words of a pattern that may be others in a line of it: two of five, none of two. */
const maxDifference = 0.4;
