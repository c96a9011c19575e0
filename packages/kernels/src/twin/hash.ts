import type { Kernels } from "../shared/kernels.js";
/**
 * Writes the 64-bit hash of each row into two columns: row i is `bytes[offsets[i] .. offsets[i+1])`. The function is
 * XXH64 with seed 0. It finds equal lines; it does not resist people who search for collisions.
 */
export const hashRows: Kernels["hashRows"] = (bytes, offsets, rows, high, low) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let row = 0; row < rows; row++) {
    const end = Math.min(offsets[row + 1]!, bytes.length);
    const hash = xxh64(view, Math.min(offsets[row]!, end), end);
    high[row] = Number(hash >> 32n);
    low[row] = Number(hash & 0xffffffffn);
  }
};

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

/** XXH64 over BigInt: plain, for the compiled form is what runs. */
function xxh64(view: DataView, start: number, end: number): bigint {
  let at = start;
  let hash = prime5;
  if (end - start >= 32) {
    const lanes = [prime1 + prime2, prime2, 0n, -prime1].map((lane) => BigInt.asUintN(64, lane));
    for (; at + 32 <= end; at += 32) {
      for (let i = 0; i < 4; i++) lanes[i] = round(lanes[i]!, view.getBigUint64(at + i * 8, true));
    }
    const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
    hash = rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n);
    for (const lane of lanes) hash = wrap((hash ^ round(0n, lane)) * prime1 + prime4);
  }
  hash = wrap(hash + BigInt(end - start));
  for (; at + 8 <= end; at += 8) {
    hash ^= round(0n, view.getBigUint64(at, true));
    hash = wrap(rotate(hash, 27n) * prime1 + prime4);
  }
  if (at + 4 <= end) {
    hash ^= wrap(BigInt(view.getUint32(at, true)) * prime1);
    hash = wrap(rotate(hash, 23n) * prime2 + prime3);
    at += 4;
  }
  for (; at < end; at++) {
    hash ^= wrap(BigInt(view.getUint8(at)) * prime5);
    hash = wrap(rotate(hash, 11n) * prime1);
  }
  hash = wrap((hash ^ (hash >> 33n)) * prime2);
  hash = wrap((hash ^ (hash >> 29n)) * prime3);
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, word: bigint): bigint {
  return wrap(rotate(wrap(lane + word * prime2), 31n) * prime1);
}

function rotate(value: bigint, bits: bigint): bigint {
  return wrap((value << bits) | (value >> (64n - bits)));
}

function wrap(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}
