import { expect, it } from "@jest/globals";
import { contextOf } from "../testing/api.js";
import { detectLabels } from "./detected-labels.js";

const uuid = (n: number) => `0000000${n}-0000-4000-8000-000000000000`;

it.each<[string, string, string[], number | undefined]>([
  ["texts", "app", ["a", "b", "c"], 3],
  ["numbers", "port", ["1", "2.5", "-3"], undefined],
  ["numbers of a label that is always told", "pod", ["1", "2", "3"], 3],
  ["a number among texts", "app", ["1", "a"], 2],
  ["ids", "trace", [uuid(1), uuid(2).replaceAll("-", "")], undefined],
  ["two numbers", "port", ["80", "81"], undefined],
  ["no and yes", "up", ["0", "1"], 2],
  ["no values", "app", [""], undefined],
])("detectLabels: %s", async (_case, label, values, want) => {
  const lists = {
    labelNames: () => Promise.resolve([label]),
    labelValues: () => Promise.resolve(values),
  };
  const asked = { selectors: [], range: { fromNs: 0n, toNs: 1n } };
  const found = await detectLabels(lists, asked, contextOf());
  expect(found).toEqual(want === undefined ? [] : [{ label, cardinality: want }]);
});
