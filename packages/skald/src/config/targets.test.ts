import { describe, expect, it } from "@jest/globals";
import { type ModuleName, modules, modulesOf, targets } from "./targets.js";

const names = Object.keys(targets);

describe("modulesOf", () => {
  it.each([...names.map((name) => [name]), names, ["read", "write", "backend"]])(
    "has each module of %s once, after those that it needs",
    (...wanted) => {
      const found = modulesOf(wanted);
      expect(new Set(found).size).toBe(found.length);
      for (const [place, name] of found.entries()) {
        const needs: readonly ModuleName[] = modules[name];
        for (const needed of needs) {
          expect(found).toContain(needed);
          expect(found.indexOf(needed)).toBeLessThan(place);
        }
      }
    },
  );

  it("has every module in some target", () => {
    expect(modulesOf(names).sort()).toEqual(Object.keys(modules).sort());
  });

  it("has an ingester of the process before whatever calls ingesters", () => {
    for (const wanted of [["all"], ["write"], ["read", "write"], ["distributor", "ingester"]]) {
      const found = modulesOf(wanted);
      expect(found.indexOf("ingester")).toBeLessThan(found.indexOf("ingesters"));
    }
  });

  it("takes only what a target needs", () => {
    expect(modulesOf(["ingester"])).toEqual([
      "peers",
      "runtime-config",
      "worker-pool",
      "store",
      "ingester",
    ]);
    expect(modulesOf(["distributor"])).not.toContain("store");
  });
});
