import { readText } from "./bytes.js";
import { hasIpOf, type IpRange } from "./ip.js";

/** 1 = digit, 2 = dot, 4 = colon, 8 = other hexadecimal digit; 0 ends a run of address characters. */
const charClass = new Uint8Array(256);
for (let c = 48; c <= 57; c++) charClass[c] = 1;
for (let c = 97; c <= 102; c++) charClass[c] = 8;
for (let c = 65; c <= 70; c++) charClass[c] = 8;
charClass[46] = 2;
charClass[58] = 4;

/** The same as `hasIpOf` on bytes: only runs that may be IPv6 become a text. */
export function compileIpScan(
  range: IpRange,
): (bytes: Uint8Array, start: number, end: number) => boolean {
  const isFour = range.bits === 32;
  const first = Number(range.first);
  const last = Number(range.last);
  return (bytes, start, end) => {
    for (let at = start; at < end; at++) {
      if (charClass[bytes[at]!] === 0) continue;
      const from = at;
      let colons = 0;
      let dots = 0;
      let gaps = 0;
      for (; at < end; at++) {
        const kind = charClass[bytes[at]!]!;
        if (kind === 0) break;
        if (kind === 4) {
          colons++;
          if (at > from && bytes[at - 1] === 58) gaps++;
        } else if (kind === 2) dots++;
      }
      // eight groups, or seven with IPv4 for the last two, or fewer around `::`
      if (gaps > 0 || colons === 7 || (colons === 6 && dots === 3)) {
        if (hasIpOf(range, readText(bytes, from, at))) return true;
      } else if (isFour && dots >= 3 && hasIpv4(bytes, from, at, first, last)) return true;
    }
    return false;
  };
}

/** Tries each run of digits and dots of a run. */
function hasIpv4(
  bytes: Uint8Array,
  from: number,
  to: number,
  first: number,
  last: number,
): boolean {
  for (let at = from; at < to; at++) {
    const start = at;
    while (at < to && (charClass[bytes[at]!]! & 3) !== 0) at++;
    const value = ipv4Value(bytes, start, at);
    if (value >= first && value <= last) return true;
  }
  return false;
}

/** The address that the range is, or -1. */
function ipv4Value(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  let part = -1;
  let parts = 0;
  for (let i = from; i <= to; i++) {
    const c = i < to ? bytes[i]! : 46;
    if (c !== 46) {
      // no leading zero, no part above 255
      if (part === 0) return -1;
      part = Math.max(part, 0) * 10 + c - 48;
      if (part > 255) return -1;
      continue;
    }
    if (part < 0) return -1;
    value = value * 256 + part;
    part = -1;
    parts++;
  }
  return parts === 4 ? value : -1;
}
