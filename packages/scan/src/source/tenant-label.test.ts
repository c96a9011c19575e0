import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import { withTenantLabel } from "./view.js";

describe("withTenantLabel", () => {
  it.each([
    [{}, '{__tenant_id__="t"}'],
    [{ app: "a", A: "b" }, '{A="b", __tenant_id__="t", app="a"}'],
    [
      { __tenant_id__: "own", app: "a" },
      '{__tenant_id__="t", app="a", original___tenant_id__="own"}',
    ],
  ])("adds the tenant to %j", (labels, want) => {
    expect(formatLabels(withTenantLabel(labelsFromObject(labels), "t"))).toBe(want);
  });
});
