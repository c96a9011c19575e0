import { setHas } from "./set.js";
import type { RegexNode } from "./syntax.js";

/** Pieces of fixed length with anything (or nothing) between neighbours: `^src=.*allow$`, `a.+b`, `.*x.*`. */
export interface Glob {
  readonly pieces: readonly GlobPiece[];
  readonly fromStart: boolean;
  readonly toEnd: boolean;
  /** The gaps do not match a newline: the form holds only for texts without one. */
  readonly oneLine: boolean;
}

/** A text, or one character set per position. */
export type GlobPiece = readonly (RegexNode & { kind: "set" })[];

/** Reads an expression as a glob; undefined when it is something else. Groups are seen through. */
export function regexGlob(node: RegexNode, options: { anchored: boolean }): Glob | undefined {
  const parts: Part[] = [];
  if (!flatten(node, parts)) return undefined;
  let fromStart = options.anchored;
  let toEnd = options.anchored;
  if (parts[0] === "start") {
    fromStart = true;
    parts.shift();
  }
  if (parts.at(-1) === "end") {
    toEnd = true;
    parts.pop();
  }
  const pieces: (RegexNode & { kind: "set" })[][] = [[]];
  let oneLine = false;
  for (const part of parts) {
    if (part === "start" || part === "end") return undefined;
    if (part === "gap" || part === "line-gap") {
      if (part === "line-gap") oneLine = true;
      pieces.push([]);
    } else (pieces.at(-1) as GlobPiece[number][]).push(part);
  }
  return { pieces, fromStart, toEnd, oneLine };
}

type Part = (RegexNode & { kind: "set" }) | "gap" | "line-gap" | "start" | "end";

const partsMax = 512;

function flatten(node: RegexNode, into: Part[]): boolean {
  if (into.length > partsMax) return false;
  switch (node.kind) {
    case "set":
      into.push(node);
      return true;
    case "group":
      return flatten(node.item, into);
    case "concat":
      return node.items.every((item) => flatten(item, into));
    case "assert":
      if (node.what !== "text-start" && node.what !== "text-end") return false;
      into.push(node.what === "text-start" ? "start" : "end");
      return true;
    case "repeat":
      return flattenRepeat(node, into);
    default:
      return false;
  }
}

function flattenRepeat(node: RegexNode & { kind: "repeat" }, into: Part[]): boolean {
  if (node.max === Number.POSITIVE_INFINITY) {
    if (node.item.kind !== "set" || node.min > 1) return false;
    const { set } = node.item;
    const dot = set[0] === 0 && set.at(-1) === 0x10ffff;
    const isAny = dot && set.length === 2;
    const isLine = dot && set.length === 4 && set[1] === 9 && set[2] === 11;
    if (!isAny && !isLine) return false;
    if (node.min === 1) into.push(node.item);
    into.push(isAny ? "gap" : "line-gap");
    return true;
  }
  if (node.min !== node.max || node.max > 64) return false;
  for (let i = 0; i < node.max; i++) if (!flatten(node.item, into)) return false;
  return true;
}

/** The text of a piece that has one character at each position. */
export function pieceText(piece: GlobPiece): string | undefined {
  let text = "";
  for (const { set } of piece) {
    const code = set[0] as number;
    if (set.length !== 2 || code !== set[1] || (code >= 0xd800 && code <= 0xdfff)) return undefined;
    text += String.fromCodePoint(code);
  }
  return text;
}

/** Tests a text; the pieces are searched from left to right, each as early as it fits. */
export function compileGlob(glob: Glob): ((text: string) => boolean) | undefined {
  const finders = glob.pieces.map(compilePiece);
  if (finders.some((finder) => finder === undefined)) return undefined;
  const pieces = finders as readonly PieceFinder[];
  const last = pieces.length - 1;
  return (text) => {
    let at = 0;
    for (let i = 0; i <= last; i++) {
      const piece = pieces[i] as PieceFinder;
      if (i === 0 && glob.fromStart) {
        at = piece.matchAt(text, 0);
        if (i === last && glob.toEnd) return at === text.length;
      } else if (i === last && glob.toEnd) {
        const start = piece.startBefore(text, text.length);
        return start >= at && piece.matchAt(text, start) === text.length;
      } else at = piece.find(text, at);
      if (at < 0) return false;
    }
    return true;
  };
}

interface PieceFinder {
  /** End of the match at `at`, or -1. */
  matchAt(text: string, at: number): number;
  /** End of the first match at or behind `at`, or -1. */
  find(text: string, at: number): number;
  /** Where a match that ends at `end` starts, or -1 when it does not fit. */
  startBefore(text: string, end: number): number;
}

function compilePiece(piece: GlobPiece): PieceFinder | undefined {
  const text = pieceText(piece);
  if (text !== undefined) {
    return {
      matchAt: (subject, at) => (subject.startsWith(text, at) ? at + text.length : -1),
      find: (subject, at) => {
        const found = subject.indexOf(text, at);
        return found < 0 ? -1 : found + text.length;
      },
      startBefore: (_, end) => end - text.length,
    };
  }
  const matchAt = (subject: string, at: number) => {
    for (const { set } of piece) {
      const code = subject.codePointAt(at);
      if (code === undefined || !setHas(set, code)) return -1;
      at += code > 0xffff ? 2 : 1;
    }
    return at;
  };
  const find = (subject: string, at: number) => {
    for (let start = at; start <= subject.length; start++) {
      if (isInsidePair(subject, start)) continue;
      const end = matchAt(subject, start);
      if (end >= 0) return end;
    }
    return -1;
  };
  const startBefore = (subject: string, end: number) => {
    let start = end;
    for (let i = 0; i < piece.length; i++) {
      start--;
      if (isInsidePair(subject, start)) start--;
    }
    return start;
  };
  return { matchAt, find, startBefore };
}

/** True between the halves of a surrogate pair. */
function isInsidePair(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const low = text.charCodeAt(at);
  if (low < 0xdc00 || low > 0xdfff) return false;
  const high = text.charCodeAt(at - 1);
  return high >= 0xd800 && high <= 0xdbff;
}
