import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject, type Matcher, type MatchOp } from "@skald/model";
import { NumberedStreams } from "./numbered-streams.js";

function tableOf(...sets: Record<string, string>[]): NumberedStreams {
  const table = new NumberedStreams();
  for (const set of sets) {
    const labels = labelsFromObject(set);
    table.add(formatLabels(labels), 0, 1);
  }
  return table;
}

function match(table: NumberedStreams, ...matchers: [string, MatchOp, string][]): string[] {
  const parsed: Matcher[] = matchers.map(([name, op, value]) => ({ name, op, value }));
  return Array.from(table.match(parsed), (stream) => table.text(stream)).sort();
}

describe("NumberedStreams", () => {
  const sets = [
    { app: "a", env: "prod" },
    { app: "b", env: "prod" },
    { app: "b", env: "dev" },
    { job: "x" },
  ];
  const [a, bProd, bDev, x] = sets.map((set) => formatLabels(labelsFromObject(set))) as [
    string,
    string,
    string,
    string,
  ];

  it.each<[string, [string, MatchOp, string][], string[]]>([
    ["nothing", [], [a, bDev, bProd, x]],
    ["one label", [["app", "=", "b"]], [bDev, bProd]],
    [
      "the smaller list first",
      [
        ["env", "=", "prod"],
        ["app", "=", "a"],
      ],
      [a],
    ],
    ["an absent value", [["app", "=", "zz"]], []],
    ["an absent name", [["zz", "=", "a"]], []],
    ["an empty value", [["app", "=", ""]], [x]],
    ["not equal", [["app", "!=", "a"]], [bDev, bProd, x]],
    [
      "a regular expression",
      [
        ["app", "=~", "a|b"],
        ["env", "!~", "d.*"],
      ],
      [a, bProd],
    ],
    ["one that accepts an absent label", [["app", "=~", "a?"]], [a, x]],
    [
      "twice the same name",
      [
        ["app", "=~", ".+"],
        ["app", "!=", "b"],
      ],
      [a],
    ],
  ])("finds streams by %s", (_, matchers, want) => {
    expect(match(tableOf(...sets), ...matchers)).toEqual(want);
  });

  it("adds nothing for a text that is none of a stream", () => {
    const table = tableOf(...sets);
    const none = '{app="\\U00ffffff"}';
    expect(() => table.add(none, 0, 1)).toThrow();
    expect([table.size, table.find(none)]).toEqual([sets.length, undefined]);
  });

  it("forgets idle streams and uses their numbers again", () => {
    const table = tableOf(...sets);
    table.seenMs[1] = 100;
    expect(table.removeIdle(50, (stream) => stream === 3)).toBe(2);
    expect(match(table, ["env", "=~", ".+"])).toEqual([bProd]);
    expect(match(table)).toEqual([bProd, x]);
    expect(table.find(a)).toBeUndefined();
    const fresh = '{app="new"}';
    expect([0, 2]).toContain(table.add(fresh, 0, 1));
    expect(match(table, ["app", "=~", ".+"]).sort()).toEqual([fresh, bProd].sort());
    expect(table.limit).toBe(4);
  });

  it("finds the same among many, by lists or by a look at each", () => {
    const values = Array.from({ length: 2000 }, (_, i) => ({
      pod: `p${i}`,
      app: `a${i % 3}`,
      ...(i % 2 === 0 ? { even: "yes" } : {}),
    }));
    const table = tableOf(...values);
    const texts = (isIn: (i: number) => boolean) =>
      values
        .filter((_, i) => isIn(i))
        .map((set) => formatLabels(labelsFromObject(set)))
        .sort();
    expect(match(table, ["app", "=", "a1"], ["even", "=", "yes"])).toEqual(
      texts((i) => i % 3 === 1 && i % 2 === 0),
    );
    expect(match(table, ["app", "!=", "a1"], ["even", "=", ""])).toEqual(
      texts((i) => i % 3 !== 1 && i % 2 === 1),
    );
    expect(
      match(table, ["app", "=~", "a[12]"], ["pod", "!~", "p1.*"], ["none", "!=", "x"]),
    ).toEqual(texts((i) => i % 3 !== 0 && !`${i}`.startsWith("1")));
    expect(match(table, ["app", "=~", ".+"], ["none", "=", "x"])).toEqual([]);
    table.seenMs.fill(100, 1000);
    expect(table.removeIdle(50, (stream) => stream < 10)).toBe(990);
    expect(match(table, ["app", "=", "a0"], ["even", "=", "yes"])).toEqual(
      texts((i) => i % 6 === 0 && (i < 10 || i >= 1000)),
    );
  });

  it("looks only once for the same until a stream comes or goes", () => {
    const table = tableOf({ app: "a" }, { app: "b" });
    const a: Matcher[] = [{ name: "app", op: "=", value: "a" }];
    const first = table.match(a);
    expect(table.match(a.map((matcher) => ({ ...matcher })))).toBe(first);
    const labels = labelsFromObject({ app: "a", pod: "p" });
    const added = table.add(formatLabels(labels), 100, 1);
    expect([...table.match(a)].sort()).toEqual([...first, added].sort());
    expect(table.removeIdle(50, () => false)).toBe(2);
    // As many as there were at first, but others.
    const other = labelsFromObject({ app: "c" });
    table.add(formatLabels(other), 100, 1);
    expect([...table.match(a)]).toEqual([added]);
  });

  it("holds many streams", () => {
    const table = tableOf(
      ...Array.from({ length: 3000 }, (_, i) => ({ pod: `p${i}`, app: `a${i % 3}` })),
    );
    expect(match(table, ["app", "=", "a1"], ["pod", "=", "p1000"])).toHaveLength(1);
    expect(match(table, ["app", "=", "a0"])).toHaveLength(1000);
    expect(table.newestDay.length).toBeGreaterThanOrEqual(3000);
  });
});
