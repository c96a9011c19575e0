import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject, labelsToObject, parseStreamText } from "@skald/model";
import { forEachLabel } from "./source.js";

describe("forEachLabel", () => {
  it.each<[string, Record<string, string>]>([
    ["no label", {}],
    ["one", { app: "a" }],
    ["several", { app: "a", env: "b c", zone: "d=e,{}" }],
    ["a value that ends like a label begins", { app: "x, env=", env: "y" }],
    ["escapes", { app: 'a"b\\', env: "line\nfeed", zone: "\u0000" }],
    ["wide characters", { app: "äöü😀", env: "ß" }],
  ])("reads %s", (_, object) => {
    const text = formatLabels(labelsFromObject(object));
    const found: Record<string, string> = {};
    forEachLabel(text, (name, value) => {
      found[name] = value;
      return true;
    });
    expect(found).toEqual(labelsToObject(parseStreamText(text)));
  });
});
