import { invalidArgument } from "@skald/model";

/** What `ip("...")` matches: addresses of one family from `first` to `last`. */
export interface IpRange {
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
    const part = m[i] as string;
    if (Number(part) > 255 || (part.length > 1 && part[0] === "0")) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return { bits: 32, value };
}

function parseIpv6(text: string): Address | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const left = parseGroups(halves[0] as string, halves.length === 1);
  const right = halves.length === 2 ? parseGroups(halves[1] as string, true) : [];
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
