import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { RE2JS } from "re2js";
import type { NeedleFormula } from "./needles.js";
import { compileRegex } from "./regex.js";

const atom = fc.constantFrom(
  "a",
  "b",
  "k",
  "S",
  "é",
  "ß",
  "=",
  " ",
  ".",
  "\\d",
  "\\w",
  "\\S",
  "\\s",
  "[a-c]",
  "[^a]",
  "[^\\n]",
  "\\b",
  "ab",
  "level=",
  "^",
  "$",
  "\\x41",
  "\\.",
  "[[:alpha:]]",
  "\\pL",
  "(?i)",
  "(?s)",
  "(?m)",
  "(?-i)",
  "\\Qa.b\\E",
);
const quantifier = fc.constantFrom(
  "",
  "",
  "",
  "",
  "*",
  "+",
  "?",
  "*?",
  "+?",
  "{2}",
  "{0,2}",
  "{1,}",
);
const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
  term: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    atom,
    fc
      .tuple(fc.constantFrom("(", "(?:", "(?i:", "(?P<n1>"), tie("pattern"))
      .map(([o, p]) => `${o}${p})`),
  ),
  pattern: fc
    .array(fc.tuple(tie("term"), quantifier, fc.constantFrom("", "", "", "", "|")), {
      minLength: 1,
      maxLength: 4,
    })
    .map((parts) => parts.map(([t, q, or]) => t + q + or).join("")),
}));
const text = fc
  .array(
    fc.constantFrom(
      "a",
      "b",
      "c",
      "k",
      "K",
      "s",
      "S",
      "ſ",
      "\u212a",
      "é",
      "É",
      "ß",
      "1",
      "=",
      " ",
      "\n",
      "A",
      ".",
      "level=",
      "😀",
      "ab",
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

function plain(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(source);
  } catch {
    return undefined;
  }
}

it("answers as re2js does", () => {
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 4, maxLength: 8 }), (source, texts) => {
      const oracle = plain(source);
      fc.pre(oracle !== undefined);
      const free = compileRegex(source, { anchored: false });
      const anchored = compileRegex(source, { anchored: true });
      const whole = RE2JS.compile(`^(?s:${source})$`);
      for (const subject of texts) {
        const want = (oracle as RE2JS).matcher(subject);
        const found = want.find();
        expect(free.test(subject)).toBe(found);
        expect(anchored.test(subject)).toBe(whole.test(subject));
        const got = free.exec(subject);
        expect(got !== undefined).toBe(found);
        if (!found || got === undefined) continue;
        expect([got.start, got.end]).toEqual([want.start(), want.end()]);
        expect(got.groups.map((group) => group ?? null)).toEqual(
          got.groups.map((_, i) => want.group(i + 1)),
        );
        const { formula, needles } = free;
        if (formula !== undefined)
          expect([subject, holds(formula, subject)]).toEqual([subject, true]);
        if (needles !== undefined) {
          const haystack = needles.ignoreCase ? lower(subject) : subject;
          expect(needles.values.some((value) => haystack.includes(value))).toBe(true);
        }
      }
      const { needles } = free;
      if (needles?.complete) {
        for (const subject of texts) {
          const haystack = needles.ignoreCase ? lower(subject) : subject;
          expect(free.test(subject)).toBe(needles.values.some((v) => haystack.includes(v)));
        }
      }
    }),
    { numRuns: Number(process.env.RUNS ?? 300) },
  );
});

/** What block filters answer, were they exact. */
function holds(formula: NeedleFormula, subject: string): boolean {
  switch (formula.kind) {
    case "all":
      return formula.of.every((part) => holds(part, subject));
    case "any":
      return formula.of.some((part) => holds(part, subject));
    case "text": {
      const wanted = lower(Buffer.from(formula.text).toString());
      return lower(subject).includes(wanted) || (formula.folds && /[\u017f\u212a]/.test(subject));
    }
    case "value":
      return false;
  }
}

/** Lowers ASCII letters only. */
function lower(value: string): string {
  return value.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
