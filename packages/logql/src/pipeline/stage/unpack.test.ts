import { describe, expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";

const error = (details: string) => ({ __error__: "JSONParserErr", __error_details__: details });

describe("unpack", () => {
  it.each([
    ['{"pod":"p","_entry":"inner"}', "inner", { pod: "p" }],
    ['{"n":5,"o":{"x":"y"},"_entry":"a\\nb"}', "a\nb", {}],
    ['{"pod":"p"}', '{"pod":"p"}', {}],
    ['{"pod":"p","_entry":1}', '{"pod":"p","_entry":1}', {}],
    ["not packed", "not packed", error("expecting json object(6), but it is not")],
    ['["array"]', '["array"]', error("expecting json object(6), but it is not")],
    ["", "", {}],
    ['{"pod":"p","_entry":nul}', '{"pod":"p","_entry":nul}', error("Unknown value type")],
    ['{"pod":"p","_entry":', '{"pod":"p","_entry":', error("Malformed JSON error")],
  ])("%s", (line, want, labels) => {
    expect(runStages("| unpack", line)).toEqual({ line: want, labels });
  });

  it("gives a taken name another one", () => {
    const input = { labels: { pod: "x" } };
    expect(runStages("| unpack", '{"pod":"p","_entry":"e"}', input)).toEqual({
      line: "e",
      labels: { pod_extracted: "p" },
    });
  });

  it("lets later stages see the new line", () => {
    const line = '{"_entry":"k=1 error"}';
    expect(runStages('| unpack |= "error" | logfmt', line)?.labels).toEqual({ k: "1" });
    expect(runStages('| unpack |= "_entry"', line)).toBeUndefined();
  });
});
