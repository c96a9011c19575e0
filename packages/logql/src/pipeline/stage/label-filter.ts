import { fnv1aBytes, type Matcher } from "@skald/model";
import { parseByteSize } from "../../go/byte-size.js";
import { parseGoDuration } from "../../go/duration.js";
import { type Parsed, parseGoFloat } from "../../go/float.js";
import { quickDuration, quickNumber, quickSize } from "../../go/quick-number.js";
import type { CompareOp, LabelFilter } from "../../syntax/ast.js";
import { bytesEqual, encodeText, readText } from "../row/bytes.js";
import { compileIpScan, parseIpRange } from "../row/ip.js";
import { errorLabel, stageErrors } from "../row/labels.js";
import { compileLabelMatch } from "./label-match.js";
import type { RowStage, RowState } from "./row-state.js";

/** Compiles a label filter; what can be wrong with it (regex, address) is thrown here as invalid_argument. */
export function compileLabelFilter(filter: LabelFilter): (row: RowState) => RowStage {
  switch (filter.kind) {
    case "and": {
      const left = compileLabelFilter(filter.left);
      const right = compileLabelFilter(filter.right);
      return (row) => both(left(row), right(row));
    }
    case "or":
      return compileAny(filter);
    case "string":
      return compileString(filter);
    case "number":
      return (row) => compare(row, filter.name, compareOp(filter.op, filter.value), number);
    case "duration": {
      const test = compareOp(filter.op, Number(filter.value));
      return (row) => compare(row, filter.name, test, duration);
    }
    case "bytes":
      return (row) => compare(row, filter.name, compareOp(filter.op, filter.value), size);
    case "ip":
      return compileIp(filter);
  }
}

/** Alternatives from left to right, up to the first that says yes; comparisons of texts that follow each other are joined. */
function compileAny(filter: LabelFilter & { kind: "or" }): (row: RowState) => RowStage {
  const compiled: ((row: RowState) => RowStage)[] = [];
  let matchers: Matcher[] = [];
  const join = () => {
    for (const same of byName(matchers)) compiled.push(compileMatchers(same));
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
  return (row) => {
    const [first, ...others] = compiled.map((compile) => compile(row));
    return others.reduce(either, first as RowStage);
  };
}

function alternativesOf(filter: LabelFilter): readonly LabelFilter[] {
  const found: LabelFilter[] = [];
  const open = [filter];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind === "or") open.push(next.right, next.left);
    else found.push(next);
  }
  return found;
}

function byName(matchers: readonly Matcher[]): Iterable<readonly Matcher[]> {
  const names = new Map<string, Matcher[]>();
  for (const matcher of matchers) {
    const same = names.get(matcher.name);
    if (same === undefined) names.set(matcher.name, [matcher]);
    else same.push(matcher);
  }
  return names.values();
}

/** Alternatives on one label: equalities are a set, and a value that comes again is not asked again. */
function compileMatchers(matchers: readonly Matcher[]): (row: RowState) => RowStage {
  const [only] = matchers;
  if (matchers.length === 1) return compileString({ kind: "string", matcher: only as Matcher });
  const isEquality = ({ op }: Matcher) => op === "=";
  const values = new Set(matchers.filter(isEquality).map(({ value }) => value));
  const others = matchers.filter((matcher) => !isEquality(matcher)).map(compileLabelMatch);
  const test = (value: string) => values.has(value) || others.some((other) => other(value));
  return compileValueTest((only as Matcher).name, test);
}

/** Both sides are asked even when the left one says no: the right one may set an error. */
function both(left: RowStage, right: RowStage): RowStage {
  return () => {
    const first = left();
    return right() && first;
  };
}

function either(left: RowStage, right: RowStage): RowStage {
  return () => left() || right();
}

function compileString({ matcher }: LabelFilter & { kind: "string" }): (row: RowState) => RowStage {
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

function compileValueTest(
  name: string,
  test: (value: string) => boolean,
): (row: RowState) => RowStage {
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

const number: Reader = { quick: quickNumber, parse: parseGoFloat };
const duration: Reader = { quick: quickDuration, parse: parseGoDuration };
const size: Reader = { quick: quickSize, parse: parseByteSize };

/** A row without the label is dropped; one whose value cannot be read is kept with an error. */
function compare(
  { labels }: RowState,
  name: string,
  test: (value: number) => boolean,
  { quick, parse }: Reader,
): RowStage {
  const slot = labels.names.slotOf(name);
  return () => {
    if (!labels.find(slot)) return false;
    const value = quick(labels.foundBytes, labels.foundStart, labels.foundEnd);
    if (!Number.isNaN(value)) return test(value);
    const parsed = parse(readText(labels.foundBytes, labels.foundStart, labels.foundEnd));
    if (!("error" in parsed)) return test(parsed.value);
    if (labels.error === "") labels.fail(stageErrors.labelFilter, parsed.error);
    return true;
  };
}

function compareOp(op: CompareOp, want: number): (value: number) => boolean {
  switch (op) {
    case "==":
      return (value) => value === want;
    case "!=":
      return (value) => value !== want;
    case ">":
      return (value) => value > want;
    case ">=":
      return (value) => value >= want;
    case "<":
      return (value) => value < want;
    case "<=":
      return (value) => value <= want;
  }
}

function compileIp({ name, op, value }: LabelFilter & { kind: "ip" }): (row: RowState) => RowStage {
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
