import { describe, expect, it } from "@jest/globals";
import { otlpExportPath } from "@skald/distributor";
import { wholeApi } from "../process/process.js";
import { knownPaths, needOf } from "./route-rights.js";

const paths = [...wholeApi().flatMap(({ paths: all }) => all), otlpExportPath];

describe("the rights of routes", () => {
  it.each([...new Set(paths)])("%s has one", (path) => {
    expect(() => needOf(path)).not.toThrow();
  });

  it("name no path that is not served", () => {
    expect(knownPaths.filter((path) => !paths.includes(path))).toEqual([]);
  });

  it("are missing for a path that nobody thought of", () => {
    expect(() => needOf("/new")).toThrow(/nobody said which right \/new needs/);
  });

  it("that only ask for reading change nothing", () => {
    const changing = wholeApi().filter(({ methods }) =>
      methods.some((one) => /PUT|DELETE/.test(one)),
    );
    // These two lead a browser to the interface, whatever it sends.
    const leading = ["/", "/ui"];
    const all = changing.flatMap(({ paths: own }) => own).filter((one) => !leading.includes(one));
    expect([...new Set(all.map(needOf))].sort()).toEqual(["delete", "operate", "rules", "write"]);
  });
});
