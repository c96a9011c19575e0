import { expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";

it.each([
  ["\u001b[31mERROR\u001b[0m disk \u001b[1;33mfull\u001b[0m", "ERROR disk full"],
  ["\u001b[38;5;208morange\u001b[39m \u001b[48;2;1;2;3mbg", "orange bg"],
  ["\u001b[2Kcleared", "cleared"],
  ["\u001b]0;title\u0007text", "text"],
  ["\u009b31mx", "x"],
  ["no colour", "no colour"],
  ["\u001b[31", ""],
  ["\u001b[12345m", "m"],
  ["\u001b and \u001b[!", "\u001b and \u001b[!"],
  ["", ""],
])("decolorizes %j", (line, want) => {
  expect(runStages("| decolorize", line)?.line).toBe(want);
});
