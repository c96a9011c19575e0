import { describe, expect, it } from "@jest/globals";
import { Budget } from "../plan/budget.js";
import { runTemplate, templateLabels, templateRow } from "../testing/run-template.js";
import { compileTemplate } from "./template.js";

describe("the work of templates", () => {
  it("bounds the work of templates that call each other twice", () => {
    const names = Array.from({ length: 40 }, (_, i) => `t${i}`);
    const source = names
      .map((name, i) => {
        const call = `{{ template "${names[i + 1]}" }}`;
        return `{{ define "${name}" }}${i < 39 ? call + call : ""}{{ end }}`;
      })
      .join("");
    expect(() => runTemplate(`${source}{{ template "t0" }}`)).toThrow("too many rounds of range");
  });

  it("bounds the work of expressions that look far ahead for each match", () => {
    const source = `{{ count "a.*b|a" (repeat 100000 "a") }}`;
    expect(() => runTemplate(source)).toThrow("too many matches for the length of the text");
    expect(runTemplate(`{{ count "a+b|a" (repeat 1000 "a") }}`)).toBe("1000");
    expect(runTemplate(`{{ count "a" (repeat 100000 "a") }}`)).toBe("100000");
  });

  it.each([
    ["an action", "{{ repeat 1000 .app }}", 10_000],
    ["what is thrown away", "{{ if repeat 1000 .app }}{{ end }}", 5000],
    ["single labels", "{{ .app }}{{ .value }}", 6],
    ["rounds", "{{ range 1000 }}{{ end }}", 1000],
  ])("counts its work: %s", (_name, source, want) => {
    const budget = new Budget();
    compileTemplate(source, "line").run(templateLabels, { ...templateRow, budget });
    expect(budget.steps).toBeGreaterThanOrEqual(want);
    expect(budget.steps).toBeLessThan(want + 100);
  });

  it("stops in the middle when it is told to", () => {
    const budget = new Budget({ shouldStop: () => true });
    const source = "{{ range 100000 }}{{ .a }}{{ end }}".replace(".a", "repeat 100 `a`");
    const template = compileTemplate(source, "line");
    const stopped = () => template.run(templateLabels, { ...templateRow, budget });
    expect(stopped).toThrow(expect.objectContaining({ code: "cancelled" }));
    expect(budget.steps).toBeLessThan(5000);
  });
});
