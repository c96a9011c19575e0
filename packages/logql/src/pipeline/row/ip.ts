import { invalidArgument } from "@skald/model";
import { readText } from "./bytes.js";

/** What `ip("...")` matches: addresses of one family from `first` to `last`. */
interface IpRange {
  readonly bits: 32 | 128;
  readonly first: bigint;
  readonly last: bigint;
}

interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

/** Parses a single address, a range `a-b` or a prefix `a/n`. Throws invalid_argument. */
export function parseIpRange(pattern: string): IpRange {
  const range = parseRange(pattern);
  if (range === undefined) throw invalidArgument(`ip: invalid pattern: ${JSON.stringify(pattern)}`);
  return range;
}

function parseRange(pattern: string): IpRange | undefined {
  if (pattern.includes("-")) {
    const [from, to, more] = pattern.split("-");
    const first = parseIp(from ?? "");
    const last = parseIp(to ?? "");
    if (more !== undefined || first === undefined || last === undefined) return undefined;
    if (first.bits !== last.bits || first.value > last.value) return undefined;
    return { bits: first.bits, first: first.value, last: last.value };
  }
  const slash = pattern.indexOf("/");
  if (slash < 0) {
    const address = parseIp(pattern);
    return address && { bits: address.bits, first: address.value, last: address.value };
  }
  const address = parseIp(pattern.slice(0, slash));
  const lengthText = pattern.slice(slash + 1);
  if (address === undefined || !/^(?:0|[1-9]\d{0,2})$/.test(lengthText)) return undefined;
  const length = Number(lengthText);
  if (length > address.bits) return undefined;
  const free = BigInt(address.bits - length);
  const first = (address.value >> free) << free;
  return { bits: address.bits, first, last: first | ((1n << free) - 1n) };
}

/** Parses an IPv4 or IPv6 address without zone; IPv4 in IPv6 stays IPv6. */
export function parseIp(text: string): Address | undefined {
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Address | undefined {
  const m = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (m === null) return undefined;
  let value = 0n;
  for (let i = 1; i <= 4; i++) {
    const part = m[i]!;
    if (Number(part) > 255 || (part.length > 1 && part[0] === "0")) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return { bits: 32, value };
}

function parseIpv6(text: string): Address | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const left = parseGroups(halves[0]!, halves.length === 1);
  const right = halves.length === 2 ? parseGroups(halves[1]!, true) : [];
  if (left === undefined || right === undefined) return undefined;
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  let value = 0n;
  for (const group of [...left, ...new Array<number>(missing).fill(0), ...right]) {
    value = (value << 16n) | BigInt(group);
  }
  return { bits: 128, value };
}

/** 16-bit groups; the last may be an IPv4 address, which makes two. */
function parseGroups(text: string, mayEndInIpv4: boolean): readonly number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (mayEndInIpv4 && i === parts.length - 1 && part.includes(".")) {
      const embedded = parseIpv4(part);
      if (embedded === undefined) return undefined;
      groups.push(Number(embedded.value >> 16n), Number(embedded.value & 0xffffn));
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

/**
 * True when the text holds an address of the range: runs of address characters that parse as IPv6, else runs of
 * digits and dots that parse as IPv4. `10.0.0.300` holds none, `10.0.0.1:80` holds one.
 */
export function hasIpOf(range: IpRange, text: string): boolean {
  for (const [run] of text.matchAll(/[0-9a-fA-F:.]{2,}/g)) {
    const six = countColons(run) >= 2 ? parseIpv6(run) : undefined;
    if (six !== undefined) {
      if (isInRange(range, six)) return true;
      continue;
    }
    if (range.bits === 128) continue;
    for (const [dotted] of run.matchAll(/[0-9.]{7,}/g)) {
      const four = parseIpv4(dotted);
      if (four !== undefined && isInRange(range, four)) return true;
    }
  }
  return false;
}

function countColons(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === 58) count++;
  return count;
}

function isInRange(range: IpRange, address: Address): boolean {
  return address.bits === range.bits && address.value >= range.first && address.value <= range.last;
}

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
