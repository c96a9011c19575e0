import { describe, expect, it } from "@jest/globals";
import { printSelector } from "@skald/logql";
import { dayNs } from "@skald/model";
import { RetentionRules } from "./retention-rules.js";

const dayMs = 86_400_000;
const now = 20_000n * dayNs + dayNs / 2n;
const ago = (days: number) => now - BigInt(Math.round(days * 86_400)) * 1_000_000_000n;
const rule = (selector: string, days: number, priority = 0) => ({
  selector,
  priority,
  period: days * dayMs,
});

function rulesOf(days: number, ...retention_stream: ReturnType<typeof rule>[]) {
  return new RetentionRules({ retention_period: days * dayMs, retention_stream });
}

/** Each filter as `selector - spared selectors`. */
function expired(rules: RetentionRules, days: number) {
  const filters = rules.expired(ago(days), now);
  if (filters === "all") return "all";
  return filters.map(({ log, unless = [] }) =>
    [log.matchers, ...unless].map((matchers) => printSelector(matchers)).join(" - "),
  );
}

describe("RetentionRules", () => {
  const dev = rule('{env="dev"}', 1);
  const audit = rule('{app="audit"}', 30, 5);
  it.each<[string, RetentionRules, number, unknown]>([
    ["nothing without rules", rulesOf(0), 9999, []],
    ["nothing that is young", rulesOf(7, dev), 0.9, []],
    ["all that is old", rulesOf(7), 7.1, "all"],
    ["one rule's streams", rulesOf(7, dev), 2, ['{env="dev"}']],
    ["all once the last rule is past", rulesOf(7, dev), 8, "all"],
    ["not what a better rule keeps", rulesOf(7, dev, audit), 2, ['{env="dev"} - {app="audit"}']],
    [
      "the rest, but not that",
      rulesOf(7, dev, audit),
      8,
      ['{env="dev"} - {app="audit"}', '{} - {app="audit"} - {env="dev"}'],
    ],
    [
      "the shorter of two alike",
      rulesOf(0, rule('{a="b"}', 3), rule('{env="dev"}', 1)),
      2,
      ['{env="dev"}'],
    ],
    ["rules alone, the rest is kept for ever", rulesOf(0, dev), 9999, ['{env="dev"}']],
  ])("takes %s", (_, rules, days, want) => {
    expect(expired(rules, days)).toEqual(want);
  });

  it("tells from when on everything is kept, and which days do not change", () => {
    expect(rulesOf(0).keptFromNs(now)).toBeUndefined();
    expect(rulesOf(7, dev).keptFromNs(now)).toBe(ago(1));
    const state = (days: bigint) => rulesOf(7, dev).stateOf((20_000n - days) * dayNs, now);
    expect([0n, 1n, 2n, 6n, 7n, 8n].map(state)).toEqual([
      "kept,kept",
      undefined,
      "past,kept",
      "past,kept",
      undefined,
      "past,past",
    ]);
  });

  it("refuses a selector that cannot be read", () => {
    expect(() => rulesOf(7, rule("{env=", 1))).toThrow("parse error");
  });
});
