/** Positions of the table are found by this many upper bits of a key at most. */
const maxTableBits = 16;

/** The tokens of some instances in order, to find whose turn a key is in some ns. */
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

  /** Position of the first token that is greater than the key; after the last one comes the first. */
  find(key: number): number {
    const { tokens } = this;
    let at = this.#firsts[key >>> this.#shift] as number;
    while (at < tokens.length && (tokens[at] as number) <= key) at++;
    return at === tokens.length ? 0 : at;
  }
}

/** For each value of the upper bits, the position of the first token that has them or greater ones. */
function firstPositions(tokens: Uint32Array, bits: number): Uint32Array {
  const firsts = new Uint32Array(2 ** bits);
  let at = 0;
  for (let upper = 0; upper < firsts.length; upper++) {
    const least = upper * 2 ** (32 - bits);
    while (at < tokens.length && (tokens[at] as number) < least) at++;
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
      const owner = owners[at] as number;
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
    const other = replicas[i] as number;
    if (zones === undefined ? other === owner : zones[other] === zones[owner]) return true;
  }
  return false;
}
