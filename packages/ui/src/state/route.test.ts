import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { defaultRoute, formatRoute, parseRoute, type Route, screens, views } from "./route.js";

const arbitraryRoute: fc.Arbitrary<Route> = fc.record({
  screen: fc.constantFrom(...screens),
  q: fc.string({ unit: "grapheme", maxLength: 40 }),
  from: fc.constantFrom("now-1h", "now-30m", "1700000000000", "1700000000000000000"),
  to: fc.constantFrom("now", "now-5m", "1700000000001"),
  view: fc.constantFrom(...views),
  cols: fc.array(fc.string({ minLength: 1, maxLength: 6 }), { maxLength: 3 }),
  open: fc.array(fc.constantFrom("app", "a,b", "a%2Cb", "ü"), { maxLength: 3 }),
  tz: fc.constantFrom("utc", "local"),
  tenant: fc.constantFrom("", "shop", "a|b"),
  line: fc.constantFrom("", "1700000000000000000.1abc"),
});

function parsed(address: string): Route {
  const url = new URL(address, "http://host/prefix/ui/");
  return parseRoute(url.pathname, url.search);
}

describe("a route", () => {
  it("comes back from its address", () => {
    fc.assert(
      fc.property(arbitraryRoute, (route) => expect(parsed(formatRoute(route))).toEqual(route)),
    );
  });

  it("leaves defaults out", () => {
    expect(formatRoute(defaultRoute)).toBe("explore");
  });

  it.each([
    "explore?from=yesterday&to=&view=3d&tz=mars&line=x&unknown=1",
    "explore?from=now-&cols=%25zz",
    "no-such-screen?open=%E0%A4%A",
    "",
  ])("takes defaults for what makes no sense: %s", (address) => {
    expect(parsed(address)).toMatchObject({
      screen: "explore",
      from: "now-1h",
      view: "lines",
      line: "",
    });
  });
});
