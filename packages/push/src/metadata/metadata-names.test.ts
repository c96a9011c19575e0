import { expect, it } from "@jest/globals";
import { sanitiseLabelName } from "./metadata-names.js";

it.each<[string, string | undefined]>([
  ["trace_id", "trace_id"],
  ["a.b", "a_b"],
  ["a__b", "a_b"],
  ["a..b", "a_b"],
  ["9num", "key_9num"],
  ["1a", "key_1a"],
  ["ünï", "_n_"],
  ["_a", "_a"],
  ["__a", "_a"],
  ["__x__", "__x__"],
  ["__a.b__", "__a_b__"],
  ["a😀b", "a_b"],
  ["", undefined],
  ["_", undefined],
  ["....", undefined],
  ["______", undefined],
])("%j becomes %j", (name, want) => {
  expect(sanitiseLabelName(name)).toBe(want);
});
