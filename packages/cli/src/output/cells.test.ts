import { describe, expect, test } from "@jest/globals";
import { alignRows } from "./cells.js";

describe("rows in columns", () => {
  test("numbers are right-aligned", () => {
    expect(
      alignRows(
        ["app", "lines"],
        [
          ["api", "7"],
          ["web", "1200"],
        ],
      ),
    ).toBe("app  lines\napi      7\nweb   1200\n");
  });

  test("ids are not, though they may look like numbers", () => {
    const rows = [["85e81763", "received"]];
    expect(alignRows(["request", "status"], rows)).toMatch(/^ request/);
    expect(alignRows(["request", "status"], rows, ["request"])).toBe(
      "request   status\n85e81763  received\n",
    );
  });
});
