import { expect, it } from "@jest/globals";
import { labelsToObject, makeLabels } from "./labels.js";

const pairs = ["__proto__", "constructor", "hasOwnProperty", "toString"].map(
  (name) => [name, `of ${name}`] as const,
);

it("makes an object of labels whatever their names, and other threads see the same", () => {
  const object = labelsToObject(makeLabels(pairs));
  for (const one of [object, structuredClone(object), JSON.parse(JSON.stringify(object))])
    expect(Object.entries(one)).toEqual(pairs);
});
