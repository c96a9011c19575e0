import { fnv1a32 } from "@skald/model";

/** How to choose the tokens of a new instance. */
interface PlanOptions {
  /** Tokens wanted. */
  readonly count: number;
  /** Instances that get each key. */
  readonly replicas: number;
  /** Distinguishes rings or zones, so that the first instance of each starts at a different place. */
  readonly seed: string;
  /** Tokens of instances that do not share the keys, such as those of other zones. */
  readonly taken?: Iterable<Uint32Array>;
}

/**
 * Chooses the tokens of an instance that joins those whose tokens are given, so that all get an equal part of the keys,
 * first hand and as replicas. The same input gives the same tokens.
 */
export function planTokens(others: readonly Uint32Array[], options: PlanOptions): Uint32Array {
  return new TokenPlan(others, options.replicas).add(options);
}

/** A range of at least this share of the wanted size is split in two. */
const minSplit = 0.9;
/** How much more the load of the new instance counts than the loads of the instances that it relieves. */
const ownWeight = 4;
/** How much the load counts beside the share in choosing the instance that gives the next range. */
const loadWeight = 0.3;
const circleSize = 2 ** 32;

/**
 * The circle while tokens are added. A range holds the keys from the token before it, up to and without its own token, and
 * belongs to the instance of that. The share of an instance is the length of its ranges, its load that of all ranges of
 * which it is a replica.
 *
 * Each new token cuts a range of the instance that has most, and of its ranges the one that evens the loads out best. So
 * shares and loads stay within a few percent however many instances join.
 */
export class TokenPlan {
  readonly #replicas: number;
  /** By range: its token, its length, its instance, and its neighbours. */
  readonly #token: number[] = [];
  readonly #size: number[] = [];
  readonly #owner: number[] = [];
  readonly #next: number[] = [];
  readonly #previous: number[] = [];
  /** By instance. */
  readonly #ranges: number[][] = [];
  readonly #share: number[] = [];
  readonly #load: number[] = [];
  /** Replicas that count now. With few instances each would have all keys. */
  #width = 0;
  readonly #taken = new Set<number>();
  /** The result of `#effect`, and its scratch lists. */
  readonly #losers: number[] = [];
  readonly #losses: number[] = [];
  readonly #between: number[] = [];
  readonly #found: number[] = [];

  constructor(others: readonly Uint32Array[], replicas: number) {
    this.#replicas = replicas;
    const all = others.flatMap((tokens, owner) =>
      Array.from(tokens, (token) => ({ token, owner })),
    );
    all.sort((a, b) => a.token - b.token || a.owner - b.owner);
    for (let i = 0; i < others.length; i++) this.#addInstance();
    for (const [i, { token, owner }] of all.entries()) {
      const before = all.at(i - 1)?.token as number;
      const size = all.length === 1 ? circleSize : token - before + (i === 0 ? circleSize : 0);
      this.#addRange(owner, token, size);
      this.#next.push((i + 1) % all.length);
      this.#previous.push((i + all.length - 1) % all.length);
    }
  }

  /** Adds an instance and returns its tokens, ascending. */
  add(options: Omit<PlanOptions, "replicas">): Uint32Array {
    for (const tokens of options.taken ?? []) for (const token of tokens) this.#taken.add(token);
    const others = this.#ranges.filter((ranges) => ranges.length > 0).length;
    const mine = this.#addInstance();
    if (others === 0) this.#start(mine, options);
    else this.#join(mine, others, options.count);
    const tokens = this.#ranges[mine] as number[];
    return Uint32Array.from(tokens, (range) => this.#token[range]!).sort();
  }

  #addInstance(): number {
    this.#share.push(0);
    this.#load.push(0);
    return this.#ranges.push([]) - 1;
  }

  #addRange(owner: number, token: number, size: number): number {
    const range = this.#token.push(token) - 1;
    this.#size.push(size);
    this.#owner.push(owner);
    this.#ranges[owner]?.push(range);
    this.#share[owner]! += size;
    return range;
  }

  /** The first instance: equal ranges. */
  #start(mine: number, { count, seed }: Pick<PlanOptions, "count" | "seed">): void {
    const start = fnv1a32(seed);
    const tokens = Array.from({ length: count }, (_, i) =>
      this.#free((start + Math.floor((i * circleSize) / count)) % circleSize),
    ).sort((a, b) => a - b);
    for (const [i, token] of tokens.entries()) {
      const before = i > 0 ? tokens[i - 1]! : (tokens.at(-1) as number) - circleSize;
      this.#addRange(mine, token, token - before);
      this.#next.push((i + 1) % count);
      this.#previous.push((i + count - 1) % count);
    }
  }

  #free(token: number): number {
    let free = token;
    while (this.#taken.has(free)) free = (free + 1) % circleSize;
    return free;
  }

  #join(mine: number, others: number, count: number): void {
    const width = Math.max(1, Math.min(this.#replicas, others));
    if (width !== this.#width) this.#countLoads(width);
    const share = circleSize / (others + 1);
    const load = share * this.#width;
    for (let left = count; left > 0; left--) {
      const richest = this.#richest();
      const size = (share - this.#share[mine]!) / left;
      const gain = (load - this.#load[mine]!) / left;
      const range = this.#bestRange(richest, mine, { size, gain, load });
      this.#cut(range, mine, this.#cutSize(range, size));
    }
  }

  #countLoads(width: number): void {
    this.#width = width;
    this.#load.fill(0);
    const found: number[] = [];
    for (const [range, size] of this.#size.entries()) {
      this.#replicasOf(range, found);
      for (const owner of found) this.#load[owner]! += size;
    }
  }

  /** The instance, beside the newest one, that should give something up first. */
  #richest(): number {
    const [shares, loads, weight] = [this.#share, this.#load, loadWeight / this.#width];
    let richest = 0;
    let most = 0;
    for (let i = 0; i < shares.length - 1; i++) {
      const has = shares[i]! + loads[i]! * weight;
      if (has <= most) continue;
      richest = i;
      most = has;
    }
    return richest;
  }

  #cutSize(range: number, size: number): number {
    const whole = this.#size[range]!;
    return Math.floor(whole > size ? size : whole / 2);
  }

  #bestRange(
    from: number,
    mine: number,
    want: { readonly size: number; readonly gain: number; readonly load: number },
  ): number {
    const ranges = this.#ranges[from] as number[];
    const sizeOf = (range: number) => this.#size[range]!;
    const largest = ranges.reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a));
    let best = largest;
    let bestScore = Number.POSITIVE_INFINITY;
    for (const range of ranges) {
      if (sizeOf(range) < want.size * minSplit && range !== largest) continue;
      const gain = this.#effect(range, this.#cutSize(range, want.size), mine);
      let score = ownWeight * (gain - want.gain) ** 2;
      for (let i = 0; i < this.#losers.length; i++) {
        const over = this.#load[this.#losers[i] as number]! - want.load;
        score += (over - this.#losses[i]!) ** 2 - over ** 2;
      }
      if (score >= bestScore) continue;
      best = range;
      bestScore = score;
    }
    return best;
  }

  /**
   * What an instance would gain as a replica if it took the first `size` keys of a range. Who would lose how much by that
   * is in `#losers` and `#losses` afterwards.
   */
  #effect(range: number, size: number, mine: number): number {
    this.#losers.length = 0;
    this.#losses.length = 0;
    this.#between.length = 0;
    const found = this.#found;
    let gain = 0;
    for (let at = range, amount = size; ; amount = this.#size[at]!) {
      this.#replicasOf(at, found);
      if (!found.includes(mine)) {
        gain += amount;
        if (found.length === this.#width) {
          this.#losers.push(found[found.length - 1]!);
          this.#losses.push(amount);
        }
      }
      at = this.#previous[at]!;
      if (at === range) return gain + this.#size[range]! - size;
      const owner = this.#owner[at]!;
      if (owner === mine) return gain;
      if (!this.#between.includes(owner) && this.#between.push(owner) === this.#width) return gain;
    }
  }

  #replicasOf(range: number, found: number[]): void {
    const [owners, next, width] = [this.#owner, this.#next, this.#width];
    found.length = 0;
    let at = range;
    do {
      const owner = owners[at]!;
      if (!found.includes(owner) && found.push(owner) === width) return;
      at = next[at]!;
    } while (at !== range);
  }

  #cut(range: number, mine: number, wanted: number): void {
    const end = this.#token[range]!;
    const whole = this.#size[range]!;
    const start = (end - whole + circleSize) % circleSize;
    const token = this.#free((start + wanted) % circleSize);
    const size = (token - start + circleSize) % circleSize;
    const gain = this.#effect(range, size, mine);
    for (const [i, loser] of this.#losers.entries()) this.#load[loser]! -= this.#losses[i]!;
    this.#load[mine]! += gain;
    const from = this.#owner[range]!;
    this.#size[range] = whole - size;
    this.#share[from]! -= size;
    const cut = this.#addRange(mine, token, size);
    const before = this.#previous[range]!;
    this.#previous.push(before);
    this.#next.push(range);
    this.#next[before] = cut;
    this.#previous[range] = cut;
  }
}
