import { expect, it } from "@jest/globals";
import type { ClientQueries } from "@skald/frontend";
import { defaultLimits } from "@skald/runtime/config";
import { load, minimal, run } from "../config/testing/load.js";
import { ruleQuerier } from "./rules.js";

it("expressions of rules go where the queries of clients go, as those of the ruler", async () => {
  const { config } = run(load(minimal));
  const { signal } = new AbortController();
  const value = { kind: "scalar", value: 1 };
  const asked: unknown[] = [];
  const ask = async (...call: unknown[]) => {
    asked.push(call);
    return value;
  };
  const limitsOf = (tenant: string) => ({
    ...defaultLimits,
    max_query_series: tenant === "a" ? 7 : 9,
  });
  const querier = ruleQuerier(config, limitsOf, { ask: ask as ClientQueries["ask"] });
  const call = { tenant: "a", query: 'rate({a="b"}[1m]) > 1', timeNs: 5n };
  expect(await querier.instant(call, { signal })).toEqual(value);
  expect(asked).toEqual([
    [
      expect.objectContaining({
        ...{ endpoint: "rule", tenants: ["a"], actors: ["ruler"] },
        params: new URLSearchParams({ query: call.query, time: "5" }).toString(),
        limits: expect.objectContaining({ max_query_series: 7 }),
      }),
      signal,
    ],
  ]);
});
