import { expect, it } from "@jest/globals";
import { mergePatterns } from "./pattern-store.js";

const pattern = "user <_> logged in";

it("adds the samples of a pattern that several found, and orders by frequency", () => {
  const rare = { pattern: "rare <_>", level: "info", samples: [[10, 31]] as const };
  const merged = mergePatterns([
    { patterns: [rare, { pattern, level: "info", samples: [[20, 30]] }], lines: 80 },
    {
      patterns: [
        {
          pattern,
          level: "info",
          samples: [
            [10, 5],
            [20, 40],
          ],
        },
      ],
      lines: 50,
    },
    { patterns: [{ pattern, level: "error", samples: [[10, 33]] }], lines: 33 },
  ]);
  expect(merged).toEqual({
    patterns: [
      {
        pattern,
        level: "info",
        samples: [
          [10, 5],
          [20, 70],
        ],
      },
      { pattern, level: "error", samples: [[10, 33]] },
      rare,
    ],
    lines: 163,
  });
});

it("leaves out what is rare everywhere", () => {
  const few = { patterns: [{ pattern, level: "info", samples: [[10, 29]] as const }], lines: 29 };
  expect(mergePatterns([few])).toEqual({ patterns: [], lines: 29 });
});
