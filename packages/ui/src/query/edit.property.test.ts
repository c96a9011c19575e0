import { describe, expect, it } from "@jest/globals";
import {
  type Expr,
  type LogExpr,
  parseQuery,
  printQuery,
  printStage,
  type Stage,
} from "@skald/logql/syntax";
import { randomQueryTexts } from "@skald/logql/testing/query-texts";
import type { Matcher } from "@skald/model";
import fc from "fast-check";
import "@skald/logql/regex";
import {
  addMatcher,
  addStage,
  removeMatcher,
  removeStage,
  replaceMatcher,
  replaceStage,
} from "./edit.js";
import { partsOf } from "./parts.js";

const queries = randomQueryTexts(22, 500);
const clicksPerQuery = 4;

const arbitraryText = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom('"', "\\", "}", "{", "a|b", "\n", "# no comment", "/* */", "`", "é", "💥", ""),
);
const arbitraryMatcher: fc.Arbitrary<Matcher> = fc.record({
  name: fc.constantFrom("app", "level", "by_name", "x"),
  op: fc.constantFrom("=", "!="),
  value: arbitraryText,
});
const arbitraryStage: fc.Arbitrary<Stage> = fc.oneof(
  fc.record({
    kind: fc.constant("line_filter" as const),
    op: fc.constantFrom("|=" as const, "!=" as const, "|~" as const, "!~" as const),
    alternatives: fc.tuple(
      fc.record({
        kind: fc.constant("text" as const),
        value: fc.constantFrom("a", "}", '"', "a b"),
      }),
    ),
  }),
  fc.record({
    kind: fc.constant("label_filter" as const),
    filter: fc.record({ kind: fc.constant("string" as const), matcher: arbitraryMatcher }),
  }),
  fc.constant({ kind: "json", extractions: [] } as const),
);

/** The log queries of a tree in the order of the text, each replaced by what `change` makes of it. */
function mapLogs(expr: Expr, change: (log: LogExpr, index: number) => LogExpr): Expr {
  let index = 0;
  const visit = <T extends Expr>(node: T): T => {
    switch (node.kind) {
      case "log":
        return change(node, index++) as T;
      case "range_aggregation":
        return { ...node, log: change(node.log, index++) };
      case "vector_aggregation":
      case "label_replace":
        return { ...node, inner: visit(node.inner) };
      case "binary":
        return { ...node, left: visit(node.left), right: visit(node.right) };
      default:
        return node;
    }
  };
  return visit(expr);
}

/** With line breaks and comments where they may stand, as a user would write them. */
function loosened(text: string, seed: number): string {
  let at = 0;
  return partsOf(text)
    .tokens.map((token, index) => {
      const gap = text.slice(at, token.start);
      at = token.end;
      const extra = ["", "", "\n  ", ' # with } "quotes\n', " /* { */ "][(seed + index * 7) % 5];
      return `${gap}${extra}${text.slice(token.start, token.end)}`;
    })
    .join("");
}

function comments(text: string): number {
  return text.split("# with").length + text.split("/* { */").length;
}

interface Click {
  readonly matcher: Matcher;
  readonly stage: Stage;
  readonly pick: number;
  readonly action: number;
}

const arbitraryClick: fc.Arbitrary<Click> = fc.record({
  matcher: arbitraryMatcher,
  stage: arbitraryStage,
  pick: fc.nat(1000),
  action: fc.nat(5),
});

function endsInTarget(stage: Stage | undefined): boolean {
  if (stage?.kind !== "drop" && stage?.kind !== "keep") return false;
  return stage.targets.at(-1)?.kind === "name";
}

/** Where a stage goes: behind all, but not behind a drop that would take it for its own. */
function placeFor(stages: readonly Stage[], stage: Stage): number {
  let at = stages.length;
  const swallowed = stage.kind === "line_filter" && (stage.op === "!=" || stage.op === "!~");
  while (swallowed && endsInTarget(stages[at - 1])) at--;
  return at;
}

/** The tree and the text after a click; undefined where the click makes no sense there. */
function click(
  text: string,
  expr: Expr,
  { matcher, stage, pick, action }: Click,
): { tree: Expr; text: string } | undefined {
  const { selectors } = partsOf(text);
  if (selectors.length === 0) return undefined;
  const s = pick % selectors.length;
  const { matchers, stages } = selectors[s]!;
  const at = (change: (log: LogExpr) => LogExpr) =>
    mapLogs(expr, (log, index) => (index === s ? change(log) : log));
  const m = pick % Math.max(1, matchers.length);
  const t = pick % Math.max(1, stages.length);
  switch (action) {
    case 0:
      return {
        tree: mapLogs(expr, (log) => ({ ...log, matchers: [...log.matchers, matcher] })),
        text: addMatcher(text, matcher),
      };
    case 1:
      return {
        tree: mapLogs(expr, (log) => ({
          ...log,
          stages: log.stages.toSpliced(placeFor(log.stages, stage), 0, stage),
        })),
        text: addStage(text, printStage(stage)),
      };
    case 2:
      if (matchers.length < 2) return undefined;
      return {
        tree: at((log) => ({ ...log, matchers: log.matchers.toSpliced(m, 1) })),
        text: removeMatcher(text, s, m),
      };
    case 3:
      if (matchers.length === 0) return undefined;
      return {
        tree: at((log) => ({ ...log, matchers: log.matchers.toSpliced(m, 1, matcher) })),
        text: replaceMatcher(text, s, m, matcher),
      };
    case 4:
      if (stages.length === 0) return undefined;
      return {
        tree: at((log) => ({ ...log, stages: log.stages.toSpliced(t, 1) })),
        text: removeStage(text, s, t),
      };
    default:
      if (stages.length === 0) return undefined;
      return {
        tree: at((log) => ({ ...log, stages: log.stages.toSpliced(t, 1, stage) })),
        text: replaceStage(text, s, t, printStage(stage)),
      };
  }
}

/** A tree that has no text, or that no text may have: its clicks are not counted. */
function hasText(tree: Expr): boolean {
  try {
    return printQuery(parseQuery(printQuery(tree))) === printQuery(tree);
  } catch {
    return false;
  }
}

describe("edits", () => {
  it("give a text that parses to the old tree with exactly that change", () => {
    let clicks = 0;
    for (const [index, query] of queries.entries()) {
      const text = loosened(query, index);
      const expr = parseQuery(text);
      for (const one of fc.sample(arbitraryClick, { seed: index, numRuns: clicksPerQuery * 4 })) {
        const after = click(text, expr, one);
        if (after === undefined || !hasText(after.tree)) continue;
        clicks++;
        expect({
          text,
          one,
          after: after.text,
          printed: printQuery(parseQuery(after.text)),
        }).toEqual({
          text,
          one,
          after: after.text,
          printed: printQuery(after.tree),
        });
        if (one.action < 2) expect(comments(after.text)).toBe(comments(text));
      }
    }
    expect(clicks).toBeGreaterThan(2000);
  });
});
