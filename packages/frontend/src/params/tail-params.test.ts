import { describe, expect, it } from "@jest/globals";
import { parseQuery } from "@skald/logql";
import { parseTailParams } from "./params.js";

const second = 1_000_000_000n;
const now = 1_795_000_000n * second;
const parse = (params: Record<string, string>) =>
  parseTailParams(new URLSearchParams({ query: '{app="a"}', ...params }), now);

describe("parseTailParams", () => {
  it.each([
    ["an hour by default", {}, now - 3600n * second],
    ["since", { since: "1d" }, now - 86_400n * second],
    ["since before an end", { since: "1m", end: "1794999000" }, now - 1060n * second],
    ["start beats since", { since: "1d", start: "1794999999" }, now - second],
  ])("begins at: %s", (_, params, startNs) => expect(parse(params).startNs).toBe(startNs));

  it("filters lines by regexp, behind all stages", () => {
    const { query, expr } = parse({ query: '{app="a"} | json # why', regexp: 'x "y" \\d' });
    expect(query).toBe('{app="a"} | json |~ "x \\"y\\" \\\\d"');
    expect(expr).toEqual(parseQuery('{app="a"} | json |~ `x "y" \\d`'));
  });

  it.each([
    [{ query: 'rate({app="a"}[1m])', regexp: "a" }, "only log selector is supported"],
    [{ since: "abc" }, "could not parse 'since' parameter: not a valid duration string: \"abc\""],
    [
      { end: "x" },
      "could not parse 'end' parameter: strconv.ParseInt: parsing \"x\": invalid syntax",
    ],
    [{ delay_for: "1.5" }, 'strconv.Atoi: parsing "1.5": invalid syntax'],
  ])("refuses %j", (params, message) => expect(() => parse(params)).toThrow(message));
});
