import { describe, expect, it } from "@jest/globals";
import { parseStreamText } from "./labels.js";

describe("parseStreamText", () => {
  it("reads what is quoted as it was", () => {
    const labels = parseStreamText('{a="b", c="d \\" \\\\ \\n \\u00e9 , e=\\"x\\""}');
    expect(labels).toMatchObject({ names: ["a", "c"], values: ["b", 'd " \\ \n é , e="x"'] });
  });

  it("remembers texts, and no more of them than fit", () => {
    const text = '{app="remembered"}';
    const first = parseStreamText(text);
    expect(parseStreamText(text)).toBe(first);
    const long = "x".repeat(1024 * 1024);
    for (let i = 0; i < 70; i++) parseStreamText(`{app="${i}", long="${long}"}`);
    expect(parseStreamText(text)).not.toBe(first);
    expect(parseStreamText(text)).toEqual(first);
  });
});
