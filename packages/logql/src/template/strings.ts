import { compileRegex, compileReplacement, decodeText, type Regex, SkaldError } from "@skald/model";
import { regexCost } from "../syntax/check.js";
import {
  checkLength,
  integer,
  type TemplateFunction,
  TemplateRunError,
  text,
  type Value,
} from "./value.js";

/** Upper case letter by letter as Go does it: a letter without a single upper case form stays. */
function goUpper(value: string): string {
  return mapLetters(value, (c) => c.toUpperCase());
}

function goLower(value: string): string {
  // A sigma at the end of a word has a form of its own, which letters one by one do not see.
  if (!/[\u03a3\u0130]/.test(value)) return mapLetters(value, (c) => c.toLowerCase());
  return Array.from(value, (c) => [...c.toLowerCase()][0] as string).join("");
}

/** A letter behind a sign of ASCII that is no underscore, or behind a blank, in upper case; an apostrophe is a sign. */
function goTitle(value: string): string {
  return value.replace(
    /(^|[\0-/:-@[-^`{-\x7f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000])(\p{L})/gu,
    (_, before: string, c: string) => before + goUpper(c),
  );
}

function mapLetters(value: string, map: (c: string) => string): string {
  const whole = map(value);
  // the same length means that no letter became several
  if (whole.length === value.length) return whole;
  let mapped = "";
  for (const c of value) {
    const one = map(c);
    mapped += [...one].length === 1 ? one : c;
  }
  return mapped;
}

const one = (call: (value: string) => string): TemplateFunction => ({
  takes: "s",
  call: (args) => call(text(args, 0)),
});
const two = (call: (a: string, b: string) => Value): TemplateFunction => ({
  takes: "ss",
  call: (args) => call(text(args, 0), text(args, 1)),
});

export const stringFunctions: Readonly<Record<string, TemplateFunction>> = {
  lower: one(goLower),
  ToLower: one(goLower),
  upper: one(goUpper),
  ToUpper: one(goUpper),
  title: one(goTitle),
  trim: one(trimSpace),
  TrimSpace: one(trimSpace),
  trimAll: two((cut, s) => trimSet(s, cut, true, true)),
  Trim: two((s, cut) => trimSet(s, cut, true, true)),
  TrimLeft: two((s, cut) => trimSet(s, cut, true, false)),
  TrimRight: two((s, cut) => trimSet(s, cut, false, true)),
  trimPrefix: two((prefix, s) => trimPrefix(s, prefix)),
  TrimPrefix: two(trimPrefix),
  trimSuffix: two((suffix, s) => trimSuffix(s, suffix)),
  TrimSuffix: two(trimSuffix),
  contains: two((part, s) => s.includes(part)),
  hasPrefix: two((prefix, s) => s.startsWith(prefix)),
  hasSuffix: two((suffix, s) => s.endsWith(suffix)),
  replace: {
    takes: "sss",
    call: (args) => bounded(replaceAll(text(args, 2), text(args, 0), text(args, 1), -1)),
  },
  Replace: {
    takes: "sssi",
    call: (args) =>
      bounded(replaceAll(text(args, 0), text(args, 1), text(args, 2), integer(args, 3))),
  },
  trunc: { takes: "is", call: (args) => truncate(integer(args, 0), text(args, 1)) },
  substr: {
    takes: "iis",
    call: (args) => substring(integer(args, 0), integer(args, 1), text(args, 2)),
  },
  indent: { takes: "is", call: (args) => indent(integer(args, 0), text(args, 1)) },
  nindent: { takes: "is", call: (args) => `\n${indent(integer(args, 0), text(args, 1))}` },
  repeat: { takes: "is", call: (args) => repeat(integer(args, 0), text(args, 1)) },
  alignLeft: { takes: "is", call: (args) => align(integer(args, 0), text(args, 1), true) },
  alignRight: { takes: "is", call: (args) => align(integer(args, 0), text(args, 1), false) },
};

const space = /^[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
const spaceAtEnd = /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/;

/** Go's strings.TrimSpace. */
function trimSpace(value: string): string {
  const head = value.replace(space, "");
  let end = head.length;
  while (end > 0 && spaceAtEnd.test(head[end - 1] as string)) end--;
  return head.slice(0, end);
}

function trimSet(value: string, cut: string, left: boolean, right: boolean): string {
  const set = new Set(cut);
  const chars = [...value];
  let from = 0;
  let to = chars.length;
  while (left && from < to && set.has(chars[from] as string)) from++;
  while (right && to > from && set.has(chars[to - 1] as string)) to--;
  return chars.slice(from, to).join("");
}

function trimPrefix(value: string, prefix: string): string {
  return value.startsWith(prefix) ? value.slice(prefix.length) : value;
}

function trimSuffix(value: string, suffix: string): string {
  return suffix !== "" && value.endsWith(suffix) ? value.slice(0, -suffix.length) : value;
}

/** Go's strings.Replace: an empty `old` matches before every character and at the end. */
function replaceAll(value: string, old: string, with_: string, limit: number): string {
  if (old === "") {
    const chars = [...value];
    const most = limit < 0 ? chars.length + 1 : Math.min(limit, chars.length + 1);
    let joined = "";
    for (let i = 0; i <= chars.length; i++) joined += (i < most ? with_ : "") + (chars[i] ?? "");
    return joined;
  }
  const parts = value.split(old);
  if (limit < 0 || limit >= parts.length - 1) {
    checkLength(value.length + (parts.length - 1) * with_.length);
    return parts.join(with_);
  }
  return (
    [...parts.slice(0, limit), parts[limit]].join(with_) +
    parts
      .slice(limit + 1)
      .map((part) => old + part)
      .join("")
  );
}

function bounded(value: string): string {
  checkLength(value.length);
  return value;
}

const encoder = new TextEncoder();

/** Cuts by bytes; a negative count keeps the end. */
function truncate(count: number, value: string): string {
  const bytes = encoder.encode(value);
  if (count < 0 && bytes.length + count > 0)
    return decodeText(bytes.subarray(bytes.length + count));
  return count >= 0 && bytes.length > count ? decodeText(bytes.subarray(0, count)) : value;
}

function substring(start: number, end: number, value: string): string {
  const bytes = encoder.encode(value);
  if (start < 0) return cut(bytes, 0, end);
  if (end < 0 || end > bytes.length) return cut(bytes, start, bytes.length);
  return cut(bytes, start, end);
}

function cut(bytes: Uint8Array, start: number, end: number): string {
  if (start > end || end < 0 || end > bytes.length) {
    throw new TemplateRunError(`runtime error: slice bounds out of range [${start}:${end}]`);
  }
  return decodeText(bytes.subarray(start, end));
}

function indent(width: number, value: string): string {
  const padding = repeat(width, " ");
  return bounded(padding + replaceAll(value, "\n", `\n${padding}`, -1));
}

function repeat(count: number, value: string): string {
  if (count < 0) throw new TemplateRunError("strings: negative Repeat count");
  checkLength(count * value.length);
  return value.repeat(count);
}

/** Pads with blanks or cuts, in characters. */
function align(width: number, value: string, left: boolean): string {
  const chars = [...value];
  if (width < 0 || width === chars.length) return value;
  checkLength(width);
  if (width > chars.length) {
    const padding = " ".repeat(width - chars.length);
    return left ? value + padding : padding + value;
  }
  return (left ? chars.slice(0, width) : chars.slice(chars.length - width)).join("");
}

/** Functions that search by RE2 expressions. */
export const regexFunctions: Readonly<Record<string, TemplateFunction>> = {
  regexReplaceAll: {
    takes: "sss",
    call: (args) => {
      const regex = cachedRegex(text(args, 0));
      const replacement = compileReplacement(text(args, 2), regex);
      return replaceMatches(regex, text(args, 1), (groups, whole) =>
        replacement(whole, groups).join(""),
      );
    },
  },
  regexReplaceAllLiteral: {
    takes: "sss",
    call: (args) => replaceMatches(cachedRegex(text(args, 0)), text(args, 1), () => text(args, 2)),
  },
  count: {
    takes: "ss",
    call: (args) => {
      let count = 0n;
      replaceMatches(cachedRegex(text(args, 0)), text(args, 1), () => {
        count++;
        return "";
      });
      return count;
    },
  },
};

const regexCostMax = 10_000;
/** Matches times characters of an expression that may look at all the text behind for each match. */
const workMax = 2 ** 24;
/** Instructions that all remembered expressions have together; one takes some hundred bytes. */
const rememberedCostMax = 100_000;
/** What remembering an expression costs besides its instructions. */
const rememberedCostBase = 50;
const regexes = new Map<string, Regex>();
let rememberedCost = 0;

function cachedRegex(pattern: string): Regex {
  const known = regexes.get(pattern);
  if (known !== undefined) return known;
  // the pattern can come from a line: it may cost no more than one of a query
  const cost = regexCost(pattern);
  if (cost > regexCostMax) throw new TemplateRunError("regular expression too large");
  try {
    const regex = compileRegex(pattern, { anchored: false });
    rememberedCost += cost + rememberedCostBase;
    if (rememberedCost > rememberedCostMax) {
      regexes.clear();
      rememberedCost = cost + rememberedCostBase;
    }
    regexes.set(pattern, regex);
    return regex;
  } catch (error) {
    if (error instanceof SkaldError) throw new TemplateRunError(error.message);
    throw error;
  }
}

/** Go's ReplaceAll: an empty match right behind a match is not replaced. */
function replaceMatches(
  regex: Regex,
  value: string,
  replacement: (groups: readonly (string | undefined)[], whole: string) => string,
): string {
  let out = "";
  let copied = 0;
  let at = 0;
  let matchesMax = regex.findsAllInLinearTime ? Number.POSITIVE_INFINITY : workMax / value.length;
  while (at <= value.length) {
    if (--matchesMax < 0) throw new TemplateRunError("too many matches for the length of the text");
    const match = regex.exec(value, at);
    if (match === undefined) break;
    out += value.slice(copied, match.start);
    if (match.end > copied || match.start === 0) {
      out += replacement(match.groups, value.slice(match.start, match.end));
    }
    copied = match.end;
    checkLength(out.length);
    const width = (value.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
    at = Math.max(at + width, match.end);
  }
  return out + value.slice(copied);
}
