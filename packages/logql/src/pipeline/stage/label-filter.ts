import { compileMatcher, fnv1aBytes, type Matcher, parseRegex, type RegexNode } from "@skald/model";
import {
  type Parsed,
  parseByteSize,
  parseDurationText,
  parseGoFloat,
  quickDuration,
  quickNumber,
  quickSize,
  secondsOf,
} from "../../go/numbers.js";
import type { LabelFilter, Unwrap } from "../../syntax/ast.js";
import { comparisons } from "../../syntax/operator.js";
import { bytesEqual, encodeText, readText } from "../row/bytes.js";
import { compileIpScan, parseIpRange } from "../row/ip.js";
import type { RowStage, RowState } from "../row/row.js";
import { errorLabel, stageErrors } from "../row/row-labels.js";

/** Compiles a label filter; what can be wrong with it (regex, address) is thrown here as invalid_argument. */
export function compileLabelFilter(filter: LabelFilter): CompiledFilter {
  switch (filter.kind) {
    case "and": {
      const left = compileLabelFilter(filter.left);
      const right = compileLabelFilter(filter.right);
      return (row) => {
        const [first, second] = [left(row), right(row)];
        return () => {
          // Both are asked even when the first says no: the second may set an error.
          const answer = first();
          return second() && answer;
        };
      };
    }
    case "or":
      return compileAny(filter);
    case "string":
      return compileString(filter);
    case "number":
    case "duration":
    case "bytes":
      return compileComparison(filter);
    case "ip":
      return compileIp(filter);
  }
}

/** A label filter that is checked; gives the test of the current row. */
export type CompiledFilter = (row: RowState) => RowStage;

/** Alternatives from left to right, up to the first that says yes; comparisons of texts that follow each other are joined. */
function compileAny(filter: LabelFilter & { kind: "or" }): CompiledFilter {
  const compiled: CompiledFilter[] = [];
  let matchers: Matcher[] = [];
  const join = () => {
    for (const name of new Set(matchers.map((matcher) => matcher.name))) {
      compiled.push(compileMatchers(matchers.filter((matcher) => matcher.name === name)));
    }
    matchers = [];
  };
  for (const alternative of alternativesOf(filter)) {
    if (alternative.kind === "string" && alternative.matcher.name !== errorLabel) {
      matchers.push(alternative.matcher);
      continue;
    }
    join();
    compiled.push(compileLabelFilter(alternative));
  }
  join();
  return (row) =>
    compiled.map((compile) => compile(row)).reduce((left, right) => () => left() || right());
}

/** The sides of `or`, and of each `or` inside, from left to right. */
export function alternativesOf(filter: LabelFilter): readonly LabelFilter[] {
  const found: LabelFilter[] = [];
  const open = [filter];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind === "or") open.push(next.right, next.left);
    else found.push(next);
  }
  return found;
}

/** Alternatives on one label: equalities are a set, and a value that comes again is not asked again. */
function compileMatchers(matchers: readonly Matcher[]): CompiledFilter {
  const [only] = matchers;
  if (matchers.length === 1) return compileString({ kind: "string", matcher: only as Matcher });
  const isEquality = ({ op }: Matcher) => op === "=";
  const values = new Set(matchers.filter(isEquality).map(({ value }) => value));
  const others = matchers.filter((matcher) => !isEquality(matcher)).map(compileLabelMatch);
  const test = (value: string) => values.has(value) || others.some((other) => other(value));
  return compileValueTest((only as Matcher).name, test);
}

function compileString({ matcher }: LabelFilter & { kind: "string" }): CompiledFilter {
  const { name, op, value } = matcher;
  const test = compileLabelMatch(matcher);
  if (name === errorLabel) {
    return ({ labels }) =>
      () =>
        test(labels.error);
  }
  if (op === "=" || op === "!=") {
    const wanted = encodeText(value);
    const whenMissing = test("");
    const isEqual = op === "=";
    return ({ labels }) => {
      const slot = labels.names.slotOf(name);
      return () => {
        if (!labels.find(slot)) return whenMissing;
        return (
          bytesEqual(labels.foundBytes, labels.foundStart, labels.foundEnd, wanted) === isEqual
        );
      };
    };
  }
  return compileValueTest(name, test);
}

function compileValueTest(name: string, test: (value: string) => boolean): CompiledFilter {
  const whenMissing = test("");
  return ({ labels }) => {
    const slot = labels.names.slotOf(name);
    const memo = memoTest(test);
    return () => {
      if (!labels.find(slot)) return whenMissing;
      return memo(labels.foundBytes, labels.foundStart, labels.foundEnd);
    };
  };
}

/** How a value is read: quickly from plain bytes (NaN when it is not plain), else as text. */
interface Reader {
  readonly quick: (bytes: Uint8Array, start: number, end: number) => number;
  readonly parse: (text: string) => Parsed<number>;
}

const readers: Readonly<Record<"number" | "duration" | "bytes", Reader>> = {
  number: { quick: quickNumber, parse: parseGoFloat },
  duration: { quick: quickDuration, parse: parseDurationText },
  bytes: { quick: quickSize, parse: parseByteSize },
};

/** Drops a row without the label, and keeps one whose value cannot be read, with an error. */
function compileComparison(filter: LabelFilter & { kind: keyof typeof readers }): CompiledFilter {
  const isTrue = comparisons[filter.op];
  const want = Number(filter.value);
  const { quick, parse } = readers[filter.kind];
  return ({ labels }) => {
    const slot = labels.names.slotOf(filter.name);
    return () => {
      if (!labels.find(slot)) return false;
      const value = quick(labels.foundBytes, labels.foundStart, labels.foundEnd);
      if (!Number.isNaN(value)) return isTrue(value, want);
      const parsed = parse(readText(labels.foundBytes, labels.foundStart, labels.foundEnd));
      if (!("error" in parsed)) return isTrue(parsed.value, want);
      if (labels.error === "") labels.fail(stageErrors.labelFilter, parsed.error);
      return true;
    };
  };
}

function compileIp({ name, op, value }: LabelFilter & { kind: "ip" }): CompiledFilter {
  const hasIp = compileIpScan(parseIpRange(value));
  const wanted = op === "==";
  return ({ labels }) => {
    const slot = labels.names.slotOf(name);
    return () => {
      if (labels.error !== "") return true;
      if (!labels.find(slot)) return false;
      return hasIp(labels.foundBytes, labels.foundStart, labels.foundEnd) === wanted;
    };
  };
}

const memoEntries = 256;
const memoValueMax = 128;

/**
 * Remembers the answers of a test of texts by the bytes of the text: labels repeat few values, and making a string
 * and running a regex costs more than comparing bytes.
 */
function memoTest(
  test: (text: string) => boolean,
): (bytes: Uint8Array, start: number, end: number) => boolean {
  const values: (Uint8Array | undefined)[] = new Array(memoEntries).fill(undefined);
  const answers = new Uint8Array(memoEntries);
  return (bytes, start, end) => {
    if (end - start > memoValueMax) return test(readText(bytes, start, end));
    const hash = fnv1aBytes(bytes, start, end);
    const at = (hash ^ (hash >>> 13)) & (memoEntries - 1);
    const known = values[at];
    if (known !== undefined && bytesEqual(bytes, start, end, known)) return answers[at] === 1;
    const answer = test(readText(bytes, start, end));
    values[at] = bytes.slice(start, end);
    answers[at] = answer ? 1 : 0;
    return answer;
  };
}

/**
 * Compiles the matcher of a label filter stage. It is the matcher of a selector, with two exceptions that clients have
 * come to rely on: an empty regex takes every value, and a regex that is a text with `.*` before or behind it (or an
 * alternation of such) finds the text anywhere in the value, so `src=~"1.*"` takes `::1`.
 */
export function compileLabelMatch(matcher: Matcher): (value: string) => boolean {
  const { op, value } = matcher;
  const plain = compileMatcher(matcher);
  if (op === "=" || op === "!=") return plain;
  const node = parseRegex(value, { dotAll: false });
  if (node && isEmpty(node)) return () => op === "=~";
  if (!value.includes(".*")) return plain;
  const test = node && looseTest(node);
  if (test === undefined) return plain;
  return op === "=~" ? test : (text) => !test(text);
}

/** Nothing but groups and flags: no character and no condition. */
function isEmpty(node: RegexNode): boolean {
  if (node.kind === "group") return isEmpty(node.item);
  return (node.kind === "concat" || node.kind === "alternate") && node.items.every(isEmpty);
}

function looseTest(node: RegexNode): ((value: string) => boolean) | undefined {
  switch (node.kind) {
    case "group":
      return looseTest(node.item);
    case "alternate": {
      const tests = node.items.map((item) => looseTest(item) ?? exactTest(item));
      if (tests.some((test) => test === undefined)) return undefined;
      return (value) => tests.some((test) => test?.(value));
    }
    case "concat":
      return containsTest(node.items);
    default:
      return undefined;
  }
}

/** At most one run of `.*` on each side of a text. */
function containsTest(items: readonly RegexNode[]): ((value: string) => boolean) | undefined {
  const from = isAnything(items[0]) ? 1 : 0;
  const to = items.length > from && isAnything(items.at(-1)) ? items.length - 1 : items.length;
  if (from === 0 && to === items.length) return undefined;
  const text = textOf(items.slice(from, to));
  return text === undefined || text === "" ? undefined : (value) => value.includes(text);
}

function exactTest(node: RegexNode): ((value: string) => boolean) | undefined {
  const text = textOf(node.kind === "concat" ? node.items : [node]);
  return text === undefined ? undefined : (value) => value === text;
}

function textOf(items: readonly RegexNode[]): string | undefined {
  let text = "";
  for (const item of items) {
    if (item.kind !== "set" || item.set.length !== 2 || item.set[0] !== item.set[1])
      return undefined;
    text += String.fromCodePoint(item.set[0]!);
  }
  return text;
}

/** `.*` without flag s */
function isAnything(node: RegexNode | undefined): boolean {
  if (node?.kind !== "repeat" || node.min !== 0 || node.max !== Number.POSITIVE_INFINITY)
    return false;
  const { item } = node;
  return item.kind === "set" && item.set.length === 4 && item.set[1] === 9 && item.set[2] === 11;
}

/** The number of the current row; undefined when it has none or a filter refuses it. */
export type RowValue = () => number | undefined;

/**
 * `| unwrap duration(l) | filters`: a row without the label has no value, one whose value cannot be read has 0 and an
 * error; the filters see that error.
 */
export function prepareUnwrap({ label, conversion, filters }: Unwrap): (row: RowState) => RowValue {
  const prepared = filters.map(compileLabelFilter);
  const isDuration = conversion === "duration" || conversion === "duration_seconds";
  const { quick, parse } =
    readers[isDuration ? "duration" : conversion === "bytes" ? "bytes" : "number"];
  return (row) => {
    const { labels } = row;
    const slot = labels.names.slotOf(label);
    const tests = prepared.map((filter) => filter(row));
    return () => {
      if (!labels.find(slot) || labels.foundStart === labels.foundEnd) return undefined;
      const { foundBytes, foundStart, foundEnd } = labels;
      let value = quick(foundBytes, foundStart, foundEnd);
      if (Number.isNaN(value)) {
        const parsed = parse(readText(foundBytes, foundStart, foundEnd));
        if ("error" in parsed) {
          labels.fail(stageErrors.unwrap, parsed.error);
          value = 0;
        } else value = parsed.value;
      }
      for (const test of tests) if (!test()) return undefined;
      return isDuration ? secondsOf(value) : value;
    };
  };
}
