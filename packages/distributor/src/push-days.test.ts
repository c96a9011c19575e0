import { expect, it } from "@jest/globals";
import { jsonPush, makeHarness } from "./testing/harness.js";

const dayMs = 86_400_000;
const days = (...of: number[]) =>
  jsonPush(
    { app: "a" },
    of.map((day) => [-day * dayMs, `${day}`]),
  );

it("refuses rows of more UTC days than one push may have, and stores the others", async () => {
  const { push, stored, counter } = makeHarness({
    reject_old_samples: false,
    max_days_per_push: 3,
  });
  expect((await push(days(9, 8, 9, 7, 8))).status).toBe(204);
  const answer = await push(days(1, 2, 3, 4, 1, 5, 3));
  expect(answer.status).toBe(400);
  expect(answer.text).toMatch(
    /^2 errors like: entry for stream .* has timestamp \S+, but the push has entries of 3 other UTC days already\. Please see `limits_config\.max_days_per_push`/,
  );
  expect(stored().map(({ line }) => line)).toEqual("9 8 9 7 8 1 2 3 1 3".split(" "));
  expect(await counter("loki_discarded_samples_total", { reason: "too_many_days" })).toBe(2);
});

it.each([
  ["the default", {}, 400],
  ["no limit", { max_days_per_push: 0 }, 1000],
])("counts days with %s", async (_, limits, want) => {
  const { push, stored } = makeHarness({ reject_old_samples: false, ...limits });
  await push(days(...Array.from({ length: 1000 }, (_, day) => day)));
  expect(stored()).toHaveLength(want);
});
