/**
 * Copies the bytes `from .. to` of `source` to `target`, beginning at `at`; the two do not overlap. `set` of a typed
 * array goes byte by byte where one side is shared memory and the other is aligned differently: a third of the speed.
 */
export function copyBytes(
  source: Uint8Array,
  from: number,
  to: number,
  target: Uint8Array,
  at: number,
): void {
  if (to - from <= maxLoopBytes)
    for (let i = from, t = at; i < to; i++, t++) target[t] = source[i]!;
  else if (copyOfNode === undefined) target.set(source.subarray(from, to), at);
  else if (at + to - from > target.length) throw new RangeError("offset is out of bounds");
  else copyOfNode.call(source, target, at, from, to);
}

/** Short ranges are cheaper byte by byte than through a call. */
const maxLoopBytes = 32;

/** Node's, which takes any `Uint8Array`, and copies less than asked for where the target ends. */
const copyOfNode = typeof Buffer === "undefined" ? undefined : Buffer.prototype.copy;
