import { describe, expect, it } from "@jest/globals";
import { type ModuleName, modules, modulesOf, type Target, targets } from "./targets.js";

describe("modulesOf", () => {
  it("has each module of the whole process once, after those that it needs", () => {
    const names = modulesOf(targets.all as Target);
    expect([...names].sort()).toEqual(Object.keys(modules).sort());
    for (const [place, name] of names.entries()) {
      const needs: readonly ModuleName[] = modules[name];
      for (const needed of needs) expect(names.indexOf(needed)).toBeLessThan(place);
    }
  });

  it("takes only what a target needs", () => {
    expect(modulesOf({ says: "x", modules: ["ingester"] })).toEqual([
      "runtime-config",
      "worker-pool",
      "store",
      "pattern-ingester",
      "ingester",
    ]);
  });
});
