import { compileTemplate } from "../template/template.js";
import { mapValue } from "../template/value.js";

/** The labels that templates of tests look at. */
export const templateLabels = mapValue(
  new Map([
    ["app", "gauge"],
    ["idx", "3"],
    ["value", "5"],
    ["json", '{"a":{"b":[1,2.5,"x",null,true]},"n":1e6}'],
  ]),
  "",
);

/** The row that templates of tests look at. */
export const templateRow = {
  line: () => "the line",
  timestampNs: () => 1_710_239_400_123_456_789n,
  nowNs: () => 0n,
};

/** What a template makes of that row. */
export function runTemplate(source: string): string {
  return compileTemplate(source, "line").run(templateLabels, templateRow);
}
