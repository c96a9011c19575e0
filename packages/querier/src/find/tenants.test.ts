import { describe, expect, it } from "@jest/globals";
import type { MatchOp } from "@skald/model";
import { selectTenants } from "./source-finder.js";

const app = { name: "app", op: "=", value: "a" } as const;
const tenant = (op: MatchOp, value: string) => ({ name: "__tenant_id__", op, value });

describe("selectTenants", () => {
  it("leaves the selector of one tenant as it is", () => {
    const matchers = [app, tenant("=", "other")];
    expect(selectTenants(["a"], matchers)).toEqual([{ tenant: "a", matchers }]);
  });

  it.each<[string, MatchOp, string, string[]]>([
    ["equal", "=", "b", ["b"]],
    ["unequal", "!=", "b", ["a", "c"]],
    ["a pattern", "=~", "a|c", ["a", "c"]],
    ["not a pattern", "!~", "a|c", ["b"]],
    ["none", "=", "z", []],
  ])("chooses tenants by %s and takes the matcher away", (_name, op, value, want) => {
    expect(selectTenants(["a", "b", "c"], [app, tenant(op, value)])).toEqual(
      want.map((name) => ({ tenant: name, tenantLabel: name, matchers: [app] })),
    );
  });

  it("asks streams for their own label where the selector has `original___tenant_id__`", () => {
    const original = { name: "original___tenant_id__", op: "=", value: "own" } as const;
    const matchers = [{ ...original, name: "__tenant_id__" }];
    expect(selectTenants(["a", "b"], [original])).toEqual(
      ["a", "b"].map((name) => ({ tenant: name, tenantLabel: name, matchers })),
    );
    expect(selectTenants(["a"], [original])).toEqual([{ tenant: "a", matchers: [original] }]);
  });
});
