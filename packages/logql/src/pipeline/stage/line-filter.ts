import {
  type ContainsOptions,
  compileTextSet,
  containsAny,
  type RowSelection,
  selectContains,
  selectContainsAny,
  type TextSet,
} from "@skald/kernels";
import {
  allOf,
  anyOf,
  type Block,
  type BytesColumn,
  compileRegex,
  formulaOfText,
  invalidArgument,
  type NeedleFormula,
} from "@skald/model";
import type { LineFilterStage, LineFilterValue } from "../../syntax/ast.js";
import { type PatternPiece, parseMatchingPattern } from "../../syntax/check.js";
import { containsText, encodeText } from "../row/bytes.js";
import { compileIpScan, parseIpRange } from "../row/ip.js";
import { LineSource, type PreparedStage } from "../row/row.js";
import { FilterRows, keepRows } from "./row-sets.js";

/** One of these texts is in every line that matches. */
interface LineNeedles {
  readonly values: readonly Uint8Array[];
  /** The values are lower case; ASCII letters match in either case. */
  readonly ignoreCase: boolean;
  /** Containing one of them is enough. */
  readonly complete: boolean;
  /** The values, to be searched in one pass, when there are several. */
  readonly texts: TextSet | undefined;
}

/** A line filter with all its alternatives taken together. */
export interface LineFilter {
  /** The operator begins with `!`: no alternative may match. */
  readonly negated: boolean;
  readonly needles?: LineNeedles;
  /** What every line has that matches. */
  readonly formula?: NeedleFormula;
  /** True when one of the alternatives matches. */
  readonly matches: (line: LineSource) => boolean;
}

/** Compiles a line filter. Throws invalid_argument. */
export function compileLineFilter({ op, alternatives }: LineFilterStage): LineFilter {
  const negated = op.startsWith("!");
  const tests = alternatives.map((value) => compileTest(op, value));
  const needles = joinNeedles(tests.map((test) => test.needles));
  const formula = anyOf(tests.map((test) => test.formula));
  return {
    negated,
    ...(needles === undefined ? {} : { needles }),
    ...(formula === undefined ? {} : { formula }),
    matches: needles?.complete ? (line) => hasNeedle(line, needles) : matchesAny(tests),
  };
}

/** A line filter behind a stage that changed the line. */
export function prepareLineFilter({ matches, negated }: LineFilter): PreparedStage {
  return ({ line }) =>
    () =>
      matches(line) !== negated;
}

/** One alternative of a line filter. */
interface LineTest {
  readonly needles?: LineNeedles;
  readonly formula?: NeedleFormula | undefined;
  readonly test: (line: LineSource) => boolean;
}

/** Alternatives that are texts are searched together, the others asked one by one. */
function matchesAny(tests: readonly LineTest[]): (line: LineSource) => boolean {
  const isText = ({ needles }: LineTest) => needles?.complete === true && !needles.ignoreCase;
  const texts = tests.filter(isText);
  if (texts.length < 2) return (line) => tests.some(({ test }) => test(line));
  const joined = joinNeedles(texts.map(({ needles }) => needles)) as LineNeedles;
  const others = tests.filter((test) => !isText(test));
  return (line) => hasNeedle(line, joined) || others.some(({ test }) => test(line));
}

/** Undefined when a line can match without any text that is known. */
function joinNeedles(parts: readonly (LineNeedles | undefined)[]): LineNeedles | undefined {
  if (parts.length === 1) return parts[0];
  const known = parts.filter((part) => part !== undefined);
  if (known.length < parts.length) return undefined;
  const ignoreCase = known.some((part) => part.ignoreCase);
  const complete = known.every((part) => part.complete && part.ignoreCase === ignoreCase);
  const fold = (value: Uint8Array) => value.map((byte) => (isUpper(byte) ? byte | 0x20 : byte));
  const values = known.flatMap((part) => part.values);
  return lineNeedles(ignoreCase ? values.map(fold) : values, { ignoreCase, complete });
}

function isUpper(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

function lineNeedles(
  values: readonly Uint8Array[],
  { ignoreCase, complete }: Pick<LineNeedles, "ignoreCase" | "complete">,
): LineNeedles {
  const texts = values.length === 1 ? undefined : compileTextSet(values, ignoreCase);
  return { values, ignoreCase, complete, texts };
}

function hasNeedle({ bytes, start, end }: LineSource, needles: LineNeedles): boolean {
  const { texts, values, ignoreCase } = needles;
  return texts === undefined
    ? containsText(bytes, start, end, values[0]!, ignoreCase)
    : containsAny(texts, bytes, start, end);
}

function compileTest(op: LineFilterStage["op"], { kind, value }: LineFilterValue): LineTest {
  if (kind === "ip") {
    if (op !== "|=" && op !== "!=") throw invalidArgument("ip: invalid operation");
    const hasIp = compileIpScan(parseIpRange(value));
    return { test: (line) => hasIp(line.bytes, line.start, line.end) };
  }
  switch (op) {
    case "|=":
    case "!=": {
      const text = encodeText(value);
      const needles = lineNeedles([text], { ignoreCase: false, complete: true });
      const formula = { kind: "text", text, folds: false } as const;
      return { needles, formula, test: (line) => hasNeedle(line, needles) };
    }
    case "|~":
    case "!~":
      return compileRegexTest(value);
    case "|>":
    case "!>":
      return compilePatternTest(parseMatchingPattern(value));
  }
}

function compileRegexTest(pattern: string): LineTest {
  const regex = compileRegex(pattern, { anchored: false });
  const { formula } = regex;
  if (regex.needles === undefined) return { formula, test: (line) => regex.test(line.text) };
  const needles = lineNeedles(regex.needles.values.map(encodeText), regex.needles);
  return {
    needles,
    formula,
    test: needles.complete
      ? (line) => hasNeedle(line, needles)
      : (line) => hasNeedle(line, needles) && regex.test(line.text),
  };
}

/** Literals found from left to right, up to the end of the line, at least one byte in each gap; no going back. */
function compilePatternTest(pieces: readonly PatternPiece[]): LineTest {
  const literals = pieces.flatMap((piece) => (piece.kind === "literal" ? [piece.text] : []));
  const longest = literals.reduce((a, b) => (b.length > a.length ? b : a), "");
  const test = ({ text }: LineSource) => matchesPattern(pieces, text);
  if (longest === "") return { test };
  return {
    formula: allOf(literals.map((literal) => formulaOfText(literal, false))),
    needles: lineNeedles([encodeText(longest)], { ignoreCase: false, complete: false }),
    test,
  };
}

function matchesPattern(pieces: readonly PatternPiece[], text: string): boolean {
  let at = 0;
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind === "capture") continue;
    const found = text.indexOf(piece.text, at);
    // a gap takes what stands before the first place of the literal, or nothing
    if (found < 0 || (i > 0 && found === at)) return false;
    at = found + piece.text.length;
  }
  return pieces.at(-1)?.kind === "capture" ? at < text.length : at === text.length;
}

/** Up to this many texts are searched one after the other, because a search for one text is that much faster. */
const fewTexts = 4;

/** Applies line filters to whole blocks: texts are searched in all lines at once, regexes run on what is left. */
export class BlockLineFilter {
  readonly #filters: readonly LineFilter[];
  readonly #known: FilterRows;
  readonly #line = new LineSource();
  #scratch = new Uint32Array(0);
  #doubtful = new Uint32Array(0);

  /** Filters that search for a text only come first: they are cheap. */
  constructor(filters: readonly LineFilter[]) {
    const isCheap = ({ needles }: LineFilter) => needles?.complete === true;
    this.#filters = [...filters.filter(isCheap), ...filters.filter((f) => !isCheap(f))];
    this.#known = new FilterRows(this.#filters);
  }

  /** Narrows the selection in place. Reads lines only where the facts of the block leave a row in doubt. */
  apply(block: Block, selection: RowSelection): void {
    const { facts } = block;
    if (facts === undefined) {
      for (const filter of this.#filters) this.#filter(filter, block, selection);
      return;
    }
    const found = this.#filters.map((_, i) => this.#known.matching(i, facts));
    this.#filters.forEach(({ negated }, i) => {
      const rows = found[i];
      if (rows !== undefined && (rows.isExact || !negated)) {
        keepRows(rows.words, selection, negated);
      }
    });
    this.#filters.forEach((filter, i) => {
      const rows = found[i];
      if (rows?.isExact) return;
      if (rows !== undefined && filter.negated) {
        this.#filterDoubtful(filter, rows.words, block, selection);
      } else this.#filter(filter, block, selection);
    });
  }

  #filter(filter: LineFilter, block: Block, selection: RowSelection): void {
    if (selection.count === 0) return;
    const lines = block.lines();
    const { rowCount } = block;
    if (filter.needles?.complete) {
      selectTexts(filter.needles, lines, rowCount, selection, filter.negated);
    } else if (filter.negated) this.#refuse(filter, lines, rowCount, selection);
    else this.#accept(filter, lines, rowCount, selection);
  }

  /** Applies a negated filter to the rows that it may refuse; the others pass. */
  #filterDoubtful(
    filter: LineFilter,
    words: Uint32Array,
    block: Block,
    selection: RowSelection,
  ): void {
    if (this.#doubtful.length < block.rowCount) this.#doubtful = new Uint32Array(block.rowCount);
    const doubtful = { rows: this.#doubtful, count: selection.count };
    doubtful.rows.set(selection.rows.subarray(0, selection.count));
    keepRows(words, doubtful, false);
    const refused = doubtful.count;
    this.#filter(filter, block, doubtful);
    if (doubtful.count === refused) return;
    const { rows } = selection;
    let next = 0;
    let kept = 0;
    for (let i = 0; i < selection.count; i++) {
      const row = rows[i]!;
      const isDoubtful = ((words[row >> 5]! >>> (row & 31)) & 1) === 1;
      if (isDoubtful && (next === doubtful.count || doubtful.rows[next] !== row)) continue;
      if (isDoubtful) next++;
      rows[kept++] = row;
    }
    selection.count = kept;
  }

  /** Keeps the rows that match. */
  #accept(
    { needles, matches }: LineFilter,
    lines: BytesColumn,
    rowCount: number,
    selection: RowSelection,
  ): void {
    if (needles !== undefined) selectTexts(needles, lines, rowCount, selection, false);
    const line = this.#line;
    const { rows } = selection;
    let kept = 0;
    for (let i = 0; i < selection.count; i++) {
      const row = rows[i]!;
      line.setRow(lines, row);
      if (matches(line)) rows[kept++] = row;
    }
    selection.count = kept;
  }

  /** Keeps the rows that do not match. */
  #refuse(filter: LineFilter, lines: BytesColumn, rowCount: number, selection: RowSelection): void {
    if (this.#scratch.length < rowCount) this.#scratch = new Uint32Array(rowCount);
    const matching = { rows: this.#scratch, count: selection.count };
    matching.rows.set(selection.rows.subarray(0, selection.count));
    this.#accept(filter, lines, rowCount, matching);
    const { rows } = selection;
    let next = 0;
    let kept = 0;
    for (let i = 0; i < selection.count; i++) {
      const row = rows[i]!;
      if (next < matching.count && matching.rows[next] === row) next++;
      else rows[kept++] = row;
    }
    selection.count = kept;
  }
}

/** Keeps the rows that contain one of the texts. */
export function selectAnyText(
  values: readonly Uint8Array[],
  { bytes, offsets }: BytesColumn,
  rowCount: number,
  selection: RowSelection,
  options: ContainsOptions = plain,
): void {
  const found = new Uint8Array(rowCount);
  for (const value of values) {
    const matching = { rows: selection.rows.slice(0, selection.count), count: selection.count };
    selectContains(bytes, offsets, rowCount, value, matching, { ...options, negate: false });
    for (let i = 0; i < matching.count; i++) found[matching.rows[i]!] = 1;
  }
  const { rows } = selection;
  const wanted = options.negate ? 0 : 1;
  let kept = 0;
  for (let i = 0; i < selection.count; i++) {
    const row = rows[i]!;
    if (found[row] === wanted) rows[kept++] = row;
  }
  selection.count = kept;
}

const plain = { ignoreCase: false, negate: false };

function selectTexts(
  { values, texts, ignoreCase }: LineNeedles,
  lines: BytesColumn,
  rowCount: number,
  selection: RowSelection,
  negate: boolean,
): void {
  const options = { ignoreCase, negate };
  const { bytes, offsets } = lines;
  if (texts === undefined) {
    selectContains(bytes, offsets, rowCount, values[0]!, selection, options);
  } else if (values.length <= fewTexts) {
    selectAnyText(values, lines, rowCount, selection, options);
  } else {
    selectContainsAny(bytes, offsets, rowCount, texts, selection, negate);
  }
}
