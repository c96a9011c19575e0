import { type Labels, labelValue } from "./labels.js";
import { compileRegex } from "./regex.js";
import { quote } from "./text.js";

export type MatchOp = "=" | "!=" | "=~" | "!~";

/** One label matcher of a stream selector; regular expressions are anchored at both ends. */
export interface Matcher {
  readonly name: string;
  readonly op: MatchOp;
  readonly value: string;
}

export function formatMatcher(matcher: Matcher): string {
  return `${matcher.name}${matcher.op}${quote(matcher.value)}`;
}

/** Compiles a matcher into a test of one label value; an absent label is the empty string. Throws on a bad regex. */
export function compileMatcher(matcher: Matcher): (value: string) => boolean {
  const { op, value } = matcher;
  if (op === "=") return (got) => got === value;
  if (op === "!=") return (got) => got !== value;
  const regex = compileRegex(value, { anchored: true });
  return op === "=~" ? (got) => regex.test(got) : (got) => !regex.test(got);
}

/** Compiles a selector: true for a label set that satisfies every matcher. */
export function compileMatchers(matchers: readonly Matcher[]): (labels: Labels) => boolean {
  const tests = matchers.map((m) => ({ name: m.name, test: compileMatcher(m) }));
  return (labels) => {
    for (const { name, test } of tests) if (!test(labelValue(labels, name))) return false;
    return true;
  };
}

/** True when the matcher accepts a stream that lacks the label. */
export function matchesEmpty(matcher: Matcher): boolean {
  return compileMatcher(matcher)("");
}
