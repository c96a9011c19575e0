import { quoteEnd } from "../quoted.js";
import { levelOfBytes } from "./text.js";

/**
 * Code of the logfmt pair whose key has the best rank among the names (lower case; keys match in any case); of
 * equal ranks the first. 0 when no key matches or when its value is no level. Broken pairs are passed over.
 */
export function findLogfmtLevel(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
): number {
  let best = names.length;
  let level = 0;
  let at = start;
  while (at < end && best > 0) {
    while (at < end && bytes[at]! <= 0x20) at++;
    const key = at;
    while (at < end && bytes[at]! > 0x20 && bytes[at] !== 0x3d && bytes[at] !== 0x22) at++;
    if (at >= end) break;
    if (bytes[at] !== 0x3d) {
      if (bytes[at] === 0x22) at = wordEnd(bytes, at, end);
      continue;
    }
    const keyEnd = at++;
    let value = at;
    let valueEnd: number;
    if (at < end && bytes[at] === 0x22) {
      value = at + 1;
      valueEnd = quoteEnd(bytes, value, end);
      if (valueEnd < 0) break;
      at = valueEnd + 1;
    } else {
      valueEnd = wordEnd(bytes, at, end);
      at = valueEnd;
    }
    const rank = keyEnd === key ? best : rankOf(bytes, key, keyEnd, names, best);
    if (rank >= best) continue;
    best = rank;
    level = levelOfBytes(bytes, value, valueEnd);
  }
  return level;
}

function wordEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at]! > 0x20) at++;
  return at;
}

/** Rank of the key among the names, or `below` when none of a better rank matches. */
function rankOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly Uint8Array[],
  below: number,
): number {
  next: for (let rank = 0; rank < below; rank++) {
    const name = names[rank]!;
    if (name.length !== end - start) continue;
    for (let i = 0; i < name.length; i++) {
      const byte = bytes[start + i]!;
      const folded = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
      if (folded !== name[i]) continue next;
    }
    return rank;
  }
  return below;
}
