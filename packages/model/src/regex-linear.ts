import {
  type CharSet,
  charSet,
  negateSet,
  type RegexNode,
  setHas,
  setsMeet,
  someNode,
} from "./regex-syntax.js";

/** An expression for JavaScript's RegExp that means the same and costs linear time. */
interface LinearRegex {
  readonly source: string;
  /** The match must begin at the start of the text: use a sticky expression. */
  readonly startsAtZero: boolean;
  /** A match ends and captures as in RE2: no group is repeated, nothing is optional that can itself match nothing. */
  readonly matchesAlike: boolean;
}

const pathsMax = 64;
const fixedMax = 256;
/** Longer sequences are not worth a proof, which looks from each loop at all that follows. */
const itemsMax = 256;

/**
 * Proves that a backtracking engine needs time linear in the text, or gives up (undefined).
 *
 * The expression is flattened to a sequence of bounded items and loops (open repetitions). A bounded item has no
 * loop inside; the number of ways to match it is counted (`paths`: alternatives add, sequences multiply), the
 * product over all items is at most 64 and their total length at most 256. A loop repeats one character set X.
 *
 * - A loop is *decided* when the text behind it cannot begin with a character of X, or nothing follows, or the end
 *   of the text must follow: giving back a character then fails at once, so one attempt costs the length of its loops.
 * - One attempt: all loops are decided, except that the last loop may be undecided: each character given back is
 *   followed by bounded work only.
 * - A loop with nothing behind it cannot fail once it is reached; it is left out of what follows.
 * - All attempts: either the match must begin at the text's start (one attempt), or there is no loop (attempts are
 *   bounded), or every loop is decided and the first item is bounded, not empty, and cannot begin with a character
 *   of any loop: then an attempt that begins inside a loop of another one fails at once, and no character is scanned
 *   by more attempts than the bounded items are long.
 *
 * Folding is in the sets already, so the flags i and m are never used; flag u makes a character a code point; a word
 * boundary looks at ASCII only, as in RE2.
 */
export function linearRegex(
  node: RegexNode,
  options: { anchored: boolean },
): LinearRegex | undefined {
  const items: RegexNode[] = [];
  flatten(node, items);
  if (items.length > itemsMax) return undefined;
  const startsAtZero = options.anchored || isAssert(items[0], "text-start");
  if (options.anchored) items.push({ kind: "assert", what: "text-end" });
  if (!isProved(items, startsAtZero)) return undefined;
  const body = sourceOf(node);
  if (body === undefined) return undefined;
  const source = options.anchored ? `^(?:${body})$` : body;
  return { source, startsAtZero, matchesAlike: matchesAlike(node) };
}

/**
 * JavaScript forgets the groups of the previous round of a repetition, and tries another way where a round beyond the
 * least matched nothing: `(?:|a)?` takes the `a`. RE2 does neither. Whether there is a match is the same.
 */
function matchesAlike(node: RegexNode): boolean {
  switch (node.kind) {
    case "concat":
    case "alternate":
      return node.items.every(matchesAlike);
    case "group":
      return matchesAlike(node.item);
    case "repeat":
      if (node.max > node.min && firstSet(node.item).nullable) return false;
      return (
        (node.max <= 1 || !someNode(node.item, ({ kind }) => kind === "group")) &&
        matchesAlike(node.item)
      );
    default:
      return true;
  }
}

function isProved(items: readonly RegexNode[], startsAtZero: boolean): boolean {
  let paths = 1;
  let fixed = 0;
  const loops: { readonly set: CharSet; readonly decided: boolean; readonly at: number }[] = [];
  for (const [at, item] of items.entries()) {
    if (item.kind === "repeat" && item.max === Number.POSITIVE_INFINITY) {
      const set = setOf(item.item);
      if (set === undefined || item.min > 1) return false;
      loops.push({ set, decided: isDecided(set, items, at + 1), at });
      continue;
    }
    const cost = bounded(item);
    if (cost === undefined) return false;
    paths *= cost.paths;
    fixed += cost.length;
  }
  if (paths > pathsMax || fixed > fixedMax) return false;
  if (loops.length === 0) return true;
  const undecided = loops.filter((loop) => !loop.decided);
  if (startsAtZero) {
    return undecided.length === 0 || (undecided.length === 1 && undecided[0] === loops.at(-1));
  }
  const inner = loops.filter((loop) => loop.at + 1 < items.length);
  if (inner.length === 0) return true;
  const first = firstOf(items, 0);
  return (
    undecided.length === 0 &&
    first.set !== undefined &&
    !first.nullable &&
    (inner[0]?.at ?? 0) > 0 &&
    inner.every((loop) => !setsMeet(loop.set, first.set as CharSet))
  );
}

/** Inlines sequences and groups that are not repeated. */
function flatten(node: RegexNode, into: RegexNode[]): void {
  if (node.kind === "concat") for (const item of node.items) flatten(item, into);
  else if (node.kind === "group") flatten(node.item, into);
  else if (node.kind === "repeat" && node.max === Number.POSITIVE_INFINITY && node.min > 1) {
    const times = node.min - 1;
    into.push({ ...node, min: times, max: times }, { ...node, min: 1 });
  } else into.push(node);
}

function isAssert(node: RegexNode | undefined, what: string): boolean {
  return node?.kind === "assert" && node.what === what;
}

function setOf(node: RegexNode): CharSet | undefined {
  if (node.kind === "group") return setOf(node.item);
  return node.kind === "set" ? node.set : undefined;
}

function isDecided(set: CharSet, items: readonly RegexNode[], from: number): boolean {
  if (from === items.length || isAssert(items[from], "text-end")) return true;
  const next = firstOf(items, from);
  if (next.set === undefined || setsMeet(set, next.set)) return false;
  return true;
}

/** Characters that the items from `from` on can begin with; nullable when they can match nothing. */
function firstOf(
  items: readonly RegexNode[],
  from: number,
): { set: CharSet | undefined; nullable: boolean } {
  let set: readonly number[] = [];
  for (let i = from; i < items.length; i++) {
    const first = firstSet(items[i] as RegexNode);
    if (first.set === undefined) return { set: undefined, nullable: false };
    set = [...set, ...first.set];
    if (!first.nullable) return { set: charSet(set), nullable: false };
  }
  return { set: charSet(set), nullable: true };
}

function firstSet(node: RegexNode): { set: CharSet | undefined; nullable: boolean } {
  switch (node.kind) {
    case "set":
      return { set: node.set, nullable: false };
    case "opaque":
      return { set: undefined, nullable: false };
    case "assert":
      return { set: [], nullable: true };
    case "group":
      return firstSet(node.item);
    case "repeat": {
      const first = firstSet(node.item);
      return { set: first.set, nullable: first.nullable || node.min === 0 };
    }
    case "concat":
      return firstOf(node.items, 0);
    case "alternate": {
      const parts = node.items.map(firstSet);
      if (parts.some((part) => part.set === undefined)) return { set: undefined, nullable: false };
      return {
        set: charSet(parts.flatMap((part) => part.set as CharSet)),
        nullable: parts.some((part) => part.nullable),
      };
    }
  }
}

/** Ways to match and greatest length of an item without loops. */
function bounded(node: RegexNode): { paths: number; length: number } | undefined {
  switch (node.kind) {
    case "set":
      return { paths: 1, length: 1 };
    case "opaque":
      return undefined;
    case "assert":
      return { paths: 1, length: 0 };
    case "group":
      return bounded(node.item);
    case "concat":
    case "alternate": {
      const parts = node.items.map(bounded);
      if (parts.some((part) => part === undefined)) return undefined;
      return (parts as { paths: number; length: number }[]).reduce(
        (sum, part) =>
          node.kind === "concat"
            ? { paths: sum.paths * part.paths, length: sum.length + part.length }
            : { paths: sum.paths + part.paths, length: Math.max(sum.length, part.length) },
        node.kind === "concat" ? { paths: 1, length: 0 } : { paths: 0, length: 0 },
      );
    }
    case "repeat": {
      const item = bounded(node.item);
      if (item === undefined || node.max > fixedMax) return undefined;
      let paths = 0;
      for (let n = node.min; n <= node.max && paths <= pathsMax; n++) paths += item.paths ** n;
      return { paths, length: item.length * node.max };
    }
  }
}

function sourceOf(node: RegexNode): string | undefined {
  switch (node.kind) {
    case "set":
      return setSource(node.set);
    case "opaque":
      return undefined;
    case "assert":
      return assertSource[node.what];
    case "group": {
      const item = sourceOf(node.item);
      return item === undefined ? undefined : `(${item})`;
    }
    case "concat":
    case "alternate": {
      const parts = node.items.map(sourceOf);
      if (parts.some((part) => part === undefined)) return undefined;
      return node.kind === "concat" ? parts.join("") : `(?:${parts.join("|")})`;
    }
    case "repeat": {
      const item = sourceOf(node.item);
      if (item === undefined) return undefined;
      const max = node.max === Number.POSITIVE_INFINITY ? "" : node.max;
      return `(?:${item}){${node.min},${max}}${node.greedy ? "" : "?"}`;
    }
  }
}

/** What is no word boundary is not here: V8 finds such places within a surrogate pair. */
const assertSource: Readonly<Record<string, string | undefined>> = {
  "text-start": "^",
  "text-end": "$",
  "line-start": "(?<=^|\\n)",
  "line-end": "(?=$|\\n)",
  word: "\\b",
};

function setSource(set: CharSet): string {
  if (set.length === 0) return "[]";
  if (set.length === 2 && set[0] === set[1]) return hex(set[0] as number);
  // the shorter of the set and its complement reads better in a debugger and compiles the same
  const negated = setHas(set, 0x10ffff) && set[0] === 0;
  const ranges = negated ? negateSet(set) : set;
  let text = "";
  for (let i = 0; i < ranges.length; i += 2) {
    text += `${hex(ranges[i] as number)}-${hex(ranges[i + 1] as number)}`;
  }
  return `[${negated ? "^" : ""}${text}]`;
}

function hex(code: number): string {
  return `\\u{${code.toString(16)}}`;
}
