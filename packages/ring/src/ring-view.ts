import { fnv1a32, type SkaldError, unavailable } from "@skald/model";
import type { RingInstance } from "./member.js";

export interface ViewOptions {
  /** Copies of each key. */
  readonly replicas: number;
  /** Whether the copies of a key must be in different zones. */
  readonly isZoneAware: boolean;
}

/** Which instances get which keys. */
export interface WritePlan {
  readonly targets: readonly WriteTarget[];
  /** Instances that get each key. */
  readonly copies: number;
  /** Copies of a key that must be taken before it counts as written. */
  readonly quorum: number;
}

export interface WriteTarget {
  readonly instance: RingInstance;
  /** Indexes of its keys among those asked for, ascending. */
  readonly keys: Uint32Array;
}

/** Which instances to ask to see everything that was written. */
export interface ReadSet {
  readonly instances: readonly RingInstance[];
  /** Answers that may be missing. For a set by zones, zones whose answers may be missing. */
  readonly maxMissing: number;
  readonly byZone: boolean;
}

/** Shards to keep, each with a circle of its own. */
const maxShards = 512;

/**
 * A ring as it was seen at one moment; it never changes. Keys are 32-bit hashes. An instance takes new keys while it is ACTIVE
 * and healthy, and is asked for what it has while it has tokens.
 */
export class RingView {
  /** All members, in the order of their ids. */
  readonly instances: readonly RingInstance[];
  readonly #byId: ReadonlyMap<string, RingInstance>;
  readonly #options: ViewOptions;
  readonly #leavers: readonly RingInstance[];
  readonly #shards = new Map<string, RingView>();
  #placement: Placement | undefined;

  /** `leavers`: members that left with rows that may be nowhere but on their disks, as unhealthy ones. */
  constructor(
    instances: readonly RingInstance[],
    options: ViewOptions,
    leavers: readonly RingInstance[] = [],
  ) {
    this.instances = [...instances].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    this.#byId = new Map(this.instances.map((instance) => [instance.id, instance]));
    this.#options = options;
    this.#leavers = leavers;
  }

  /** Copies of a key that must be written: more than half. */
  get quorum(): number {
    return Math.floor(this.#options.replicas / 2) + 1;
  }

  /** The number of ACTIVE, healthy instances, by which limits of the whole cluster are divided. */
  get activeCount(): number {
    return this.#placed.instances.length;
  }

  /** No instance reports a row from before this time, in ms since the epoch; infinite when none reports any. */
  get oldestMs(): number {
    return Math.min(...this.instances.map(({ oldestMs = Number.POSITIVE_INFINITY }) => oldestMs));
  }

  find(id: string): RingInstance | undefined {
    return this.#byId.get(id);
  }

  /**
   * Says which instances get which keys. One that takes nothing now is passed over and the next one takes its place. Throws
   * unavailable when fewer than a quorum are left.
   */
  planWrites(keys: Uint32Array): WritePlan {
    const { circle, instances, replicas, width } = this.#placed;
    if (width < this.quorum) throw this.#tooFew(width);
    const starts = new Uint32Array(keys.length);
    const counts = new Uint32Array(instances.length);
    for (let key = 0; key < keys.length; key++) {
      const start = circle.find(keys[key]!) * width;
      starts[key] = start;
      for (let i = start; i < start + width; i++) counts[replicas[i] as number]!++;
    }
    const lists = Array.from(counts, (count) => (count > 0 ? new Uint32Array(count) : undefined));
    counts.fill(0);
    for (let key = 0; key < keys.length; key++) {
      const start = starts[key]!;
      for (let i = start; i < start + width; i++) {
        const owner = replicas[i]!;
        lists[owner]![counts[owner]!++] = key;
      }
    }
    const targets = lists.flatMap((list, i) =>
      list === undefined ? [] : [{ instance: instances[i]!, keys: list }],
    );
    return { targets, copies: width, quorum: this.quorum };
  }

  /**
   * Says whom to ask. Each key is on a quorum of instances, in zones of their own where zones count, so that one fewer than a
   * quorum may be missing; instances that the ring lacks, and those that left with rows, count as missing. Lost ones that are
   * covered have nothing to add and do not count. Throws unavailable when there are too few.
   */
  readSet(): ReadSet {
    const placed = this.instances.filter(({ tokens }) => tokens.length > 0);
    const holders = [...placed, ...this.#leavers];
    if (holders.length === 0) throw unavailable("empty ring");
    const healthy = holders.filter(({ isHealthy }) => isHealthy);
    const covered = holders.filter(({ isCovered }) => isCovered === true);
    const unhealthy = holders.filter(({ isHealthy, isCovered }) => !isHealthy && !isCovered);
    const zones = new Set(holders.map(({ zone }) => zone)).size;
    // With fewer zones no key can have been placed by zone.
    const byZone = this.#options.isZoneAware && zones >= this.quorum;
    const asked = byZone ? healthy.filter(({ zone }) => !isIn(zone, unhealthy)) : healthy;
    const all = byZone ? zones : holders.length;
    const known = [...asked, ...covered].filter(({ zone }) => !byZone || !isIn(zone, unhealthy));
    const left = byZone ? new Set(known.map(({ zone }) => zone)).size : known.length;
    const maxMissing = left - Math.max(all, this.#options.replicas) + this.quorum - 1;
    if (maxMissing < 0) {
      const text = "too many unhealthy instances in the ring";
      throw unavailable(
        unhealthy.length === 0
          ? text
          : `${text}: ${names(unhealthy)}; the answer may lack rows until they are back, or are forgotten on the page /ring`,
      );
    }
    return { instances: asked, maxMissing, byZone };
  }

  /** All that may have a row on their disks. Throws unavailable while one of them is away, even if its rows are in the store. */
  everyHolder(): ReadSet {
    const placed = this.instances.filter(({ tokens }) => tokens.length > 0);
    const away = [...placed, ...this.#leavers].filter(({ isHealthy }) => !isHealthy);
    if (placed.length > 0 && away.length === 0)
      return { instances: placed, maxMissing: 0, byZone: false };
    throw unavailable(`ingesters that may hold rows are away: ${names(away)}; see the page /ring`);
  }

  /** The same ring, in which some instances take no keys. */
  without(ids: ReadonlySet<string>): RingView {
    const left = this.instances.map((one) =>
      ids.has(one.id) ? { ...one, isHealthy: false } : one,
    );
    return new RingView(left, this.#options, this.#leavers);
  }

  /** The one instance that works on a key; undefined when there is none. */
  ownerOf(key: number): RingInstance | undefined {
    const { circle, instances } = this.#placed;
    return instances[circle.owners[circle.find(key)] as number];
  }

  /**
   * The part of the ring that a tenant uses: `size` instances, as many of each zone where zones count, the same ones
   * for as long as they are there. 0 is all. With `since` (ms since the epoch) for reading: also those that were in the part
   * before newer instances came.
   */
  shard(tenant: string, size: number, since?: number): RingView {
    if (size <= 0 || size >= this.instances.length) return this;
    // Whole minutes, the earlier one, so that shards are found again.
    const minute = since === undefined ? undefined : Math.floor(since / 60_000) * 60_000;
    const name = `${size} ${minute ?? ""} ${tenant}`;
    const known = this.#shards.get(name);
    if (known !== undefined) return known;
    if (this.#shards.size >= maxShards)
      this.#shards.delete(this.#shards.keys().next().value as string);
    const { isZoneAware } = this.#options;
    const found = rankForShard(this.instances, { tenant, size, since: minute, isZoneAware });
    const shard = new RingView(found, this.#options, this.#leavers);
    this.#shards.set(name, shard);
    return shard;
  }

  /** The part of all keys that each instance has first, from 0 to 1, whatever its state. */
  ownership(): ReadonlyMap<string, number> {
    const { tokens, owners } = new Circle(this.instances.map((instance) => instance.tokens));
    const parts = new Float64Array(this.instances.length);
    for (const [i, owner] of owners.entries()) {
      const before = i > 0 ? tokens[i - 1]! : (tokens.at(-1) as number) - 2 ** 32;
      parts[owner]! += (tokens[i]! - before) / 2 ** 32;
    }
    return new Map(this.instances.map(({ id }, i) => [id, parts[i] as number]));
  }

  get #placed(): Placement {
    this.#placement ??= place(this.instances.filter(takesKeys), this.#options);
    return this.#placement;
  }

  #tooFew(found: number): SkaldError {
    const others = this.instances.filter((instance) => !takesKeys(instance));
    const text = `at least ${this.quorum} live replicas required, could only find ${found}`;
    return unavailable(
      others.length === 0 ? text : `${text} - unhealthy instances: ${names(others)}`,
    );
  }
}

/** The instances that take keys, and where each key goes. */
interface Placement {
  readonly instances: readonly RingInstance[];
  readonly circle: Circle;
  /** For each token of the circle, `width` indexes of instances. */
  readonly replicas: Uint16Array;
  readonly width: number;
}

function place(instances: readonly RingInstance[], options: ViewOptions): Placement {
  const holders = instances.filter(({ tokens }) => tokens.length > 0);
  const circle = new Circle(instances.map(({ tokens }) => tokens));
  const names = [...new Set(holders.map(({ zone }) => zone))];
  const zones = options.isZoneAware
    ? Uint16Array.from(instances, ({ zone }) => names.indexOf(zone))
    : undefined;
  const width = Math.min(options.replicas, zones === undefined ? holders.length : names.length);
  return { instances, circle, replicas: findReplicas(circle, width, zones), width };
}

function takesKeys({ state, isHealthy }: RingInstance): boolean {
  return state === "ACTIVE" && isHealthy;
}

function isIn(zone: string, instances: readonly RingInstance[]): boolean {
  return instances.some((instance) => instance.zone === zone);
}

function names(instances: readonly RingInstance[]): string {
  return instances.map(({ id }) => id).join(",");
}

/** The tenant and the size of a shard. */
interface ShardOptions {
  readonly tenant: string;
  /** Instances in all. */
  readonly size: number;
  /** Instances registered later, in ms since the epoch, do not count as filling the shard. */
  readonly since: number | undefined;
  readonly isZoneAware: boolean;
}

/**
 * The instances of a tenant by rendezvous hashing (Thaler and Ravishankar, 1998): each has a score that depends on the tenant
 * and its own id only, and the best ones are taken. So an instance that comes or goes changes one place at most.
 */
function rankForShard(
  instances: readonly RingInstance[],
  { tenant, size, since, isZoneAware }: ShardOptions,
): RingInstance[] {
  const zones = isZoneAware ? [...new Set(instances.map(({ zone }) => zone))] : [undefined];
  const wanted = Math.ceil(size / zones.length);
  return zones.flatMap((zone) => {
    const own = instances.filter((instance) => zone === undefined || instance.zone === zone);
    return takeOlder(
      rankFor(tenant, own, ({ id }) => id),
      wanted,
      since,
    );
  });
}

/** Takes from the front until enough instances are old enough. Without a time it takes `wanted`. */
function takeOlder(
  ranked: readonly RingInstance[],
  wanted: number,
  since: number | undefined,
): RingInstance[] {
  if (since === undefined) return ranked.slice(0, wanted);
  const taken: RingInstance[] = [];
  let older = 0;
  for (const instance of ranked) {
    if (older >= wanted) break;
    taken.push(instance);
    if (instance.registeredMs < since) older++;
  }
  return taken;
}

/** Ranks items for a tenant, the best first. Adding or removing an item keeps the order of the others. */
export function rankFor<T>(tenant: string, all: readonly T[], nameOf: (one: T) => string): T[] {
  return all
    .map((one) => ({ one, name: nameOf(one), score: ringKey(tenant, nameOf(one)) }))
    .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
    .map(({ one }) => one);
}

/**
 * The place on a ring of what is named by these texts. FNV spreads the last bytes badly over the upper bits: the finalizer of
 * MurmurHash3 mixes them in.
 */
export function ringKey(...names: readonly string[]): number {
  let hash = fnv1a32(names.join("\0"));
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Most upper bits of a key that index the table of positions. */
const maxTableBits = 16;

/** The tokens of some instances in order. It finds the owner of a key in a few ns. */
export class Circle {
  /** All tokens, ascending. */
  readonly tokens: Uint32Array;
  /** For each token the instance that has it, as its index in what the circle was made of. */
  readonly owners: Uint16Array;
  readonly #shift: number;
  readonly #firsts: Uint32Array;

  /** Takes the tokens of each instance, of at most 65,535. */
  constructor(tokensByOwner: readonly Uint32Array[]) {
    const count = tokensByOwner.reduce((sum, tokens) => sum + tokens.length, 0);
    // Token and owner in one number, so that the sort is that of numbers.
    const keys = new Float64Array(count);
    let at = 0;
    for (const [owner, tokens] of tokensByOwner.entries())
      for (const token of tokens) keys[at++] = token * 65_536 + owner;
    keys.sort();
    this.tokens = Uint32Array.from(keys, (key) => Math.floor(key / 65_536));
    this.owners = Uint16Array.from(keys, (key) => key % 65_536);
    const bits = Math.min(maxTableBits, Math.max(1, Math.ceil(Math.log2(count + 1))));
    this.#shift = 32 - bits;
    this.#firsts = firstPositions(this.tokens, bits);
  }

  /** Position of the first token greater than the key. The first token follows the last one. */
  find(key: number): number {
    const { tokens } = this;
    let at = this.#firsts[key >>> this.#shift]!;
    while (at < tokens.length && tokens[at]! <= key) at++;
    return at === tokens.length ? 0 : at;
  }
}

/** For each value of the upper bits, the position of the first token at or above it. */
function firstPositions(tokens: Uint32Array, bits: number): Uint32Array {
  const firsts = new Uint32Array(2 ** bits);
  let at = 0;
  for (let upper = 0; upper < firsts.length; upper++) {
    const least = upper * 2 ** (32 - bits);
    while (at < tokens.length && tokens[at]! < least) at++;
    firsts[upper] = at;
  }
  return firsts;
}

/**
 * For each token the instances that get the keys before it: `width` of them, in the order of the circle, each of another
 * instance, and of another zone where zones are given by instance. There must be as many instances, or zones.
 */
export function findReplicas(circle: Circle, width: number, zones?: Uint16Array): Uint16Array {
  const { owners } = circle;
  const replicas = new Uint16Array(owners.length * width);
  for (let token = 0; token < owners.length; token++) {
    const start = token * width;
    for (let found = 0, at = token; found < width; at = at + 1 < owners.length ? at + 1 : 0) {
      const owner = owners[at]!;
      if (!isPlaced(replicas, start, found, owner, zones)) replicas[start + found++] = owner;
    }
  }
  return replicas;
}

function isPlaced(
  replicas: Uint16Array,
  start: number,
  found: number,
  owner: number,
  zones: Uint16Array | undefined,
): boolean {
  for (let i = start; i < start + found; i++) {
    const other = replicas[i]!;
    if (zones === undefined ? other === owner : zones[other] === zones[owner]) return true;
  }
  return false;
}
