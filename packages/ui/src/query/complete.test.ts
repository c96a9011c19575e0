import { describe, expect, it } from "@jest/globals";
import { offersFor, type Sources } from "./complete.js";
import { placeAt } from "./place.js";

/** Answers of a small server, and the calls that were made. */
function sources(): Sources & { readonly calls: string[] } {
  const calls: string[] = [];
  const note = <T>(call: string, answer: T): Promise<T> => {
    calls.push(call);
    return Promise.resolve(answer);
  };
  const field = (name: string, type: string) => ({ name, type, values: 3, parsers: ["json"] });
  return {
    calls,
    labels: (selector) =>
      note(`labels ${selector ?? "all"}`, [
        { name: "app", values: 2 },
        { name: "pod", values: 9 },
      ]),
    labelValues: (name, selector) =>
      note(`values of ${name} in ${selector ?? "all"}`, ["web", "db"]),
    fields: (query) => note(`fields of ${query}`, [field("status", "int"), field("msg", "string")]),
    fieldValues: (name, query) =>
      note(`values of ${name} of ${query}`, ["1", "2", "3", "4", "5", "6", "7", "8"]),
  };
}

/** The text with a caret, the first offers, the calls, and the text when the first offer is taken. */
const cases: readonly (readonly [string, string, string, string])[] = [
  ["{^", "app pod", "labels all", "{app"],
  ['{app="web", ^', "app pod", 'labels {app="web"}', '{app="web", app'],
  ['{po^, app="web"}', "pod", 'labels {app="web"}', '{pod, app="web"}'],
  ["{app=^", "web db", "values of app in all", '{app="web"'],
  ['{app="w^', "web", "values of app in all", '{app="web"'],
  ['{app="w^"}', "web", "values of app in all", '{app="web"}'],
  ['{pod="a", app=~"d^"}', "db", 'values of app in {pod="a"}', '{pod="a", app=~"db"}'],
  ["{app ^", "= !=", "", "{app ="],
  ['{app="a"} | ^', "status msg", 'fields of {app="a"}', '{app="a"} | status'],
  ['{app="a"} | json | ^', "status msg", 'fields of {app="a"} | json', '{app="a"} | json | status'],
  ['{app="a"} | js^', "json", 'fields of {app="a"}', '{app="a"} | json'],
  [
    '{app="a"} | st^ >= 3 | json',
    "status",
    'fields of {app="a"}',
    '{app="a"} | status >= 3 | json',
  ],
  [
    '{app="a"} | json | status >= ^',
    "1 2",
    'values of status of {app="a"} | json',
    '{app="a"} | json | status >= 1',
  ],
  [
    '{app="a"} | json | a="b" and ^',
    "status msg",
    'fields of {app="a"} | json',
    '{app="a"} | json | a="b" and status',
  ],
  [
    'sum_over_time({app="a"} | json | unwrap ^',
    "status",
    'fields of {app="a"} | json',
    'sum_over_time({app="a"} | json | unwrap status',
  ],
  ["su^", "sum_over_time sum", "", "sum_over_time("],
  ["sum^", "sum sum_over_time", "", "sum("],
  ["sum(coun^", "count_over_time count", "", "sum(count_over_time("],
  [
    'sum by (^) (rate({app="a"}[1m]))',
    "app pod status msg",
    'labels all; fields of {app="a"}',
    'sum by (app) (rate({app="a"}[1m]))',
  ],
  ['{app="a"} # comment ^', "", "", '{app="a"} # comment '],
  ['{app="a"} |= "x^"', "", "", '{app="a"} |= "x"'],
  ['{app="a"}^', "", "", '{app="a"}'],
];

describe("suggestions", () => {
  it.each(cases)("%s", async (marked, offers, calls, taken) => {
    const caret = marked.indexOf("^");
    const text = marked.replace("^", "");
    const from = sources();
    const place = placeAt(text, caret);
    const found = place === undefined ? [] : await offersFor(place, from);
    const wanted = offers.split(" ").filter(Boolean);
    expect(
      found
        .slice(0, Math.max(wanted.length, 1))
        .map((one) => one.text)
        .slice(0, wanted.length),
    ).toEqual(wanted);
    if (wanted.length === 0) expect(found).toEqual([]);
    expect(from.calls.join("; ")).toBe(calls);
    const first = found[0];
    const result =
      first === undefined || place === undefined
        ? text
        : text.slice(0, place.from) + first.insert + text.slice(place.to);
    expect(result).toBe(taken);
  });
});
