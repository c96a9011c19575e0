import { compileMatcher, type Matcher, parseRegex, type RegexNode } from "@skald/model";

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
