import { afterAll, describe, expect, it } from "@jest/globals";
import { scanMetric } from "./scans/metric.js";
import { SourceCache } from "./source/cache.js";
import { contextOf, countReads, leafOf, ms, valuesOf } from "./testing/scans.js";
import { makeDirectory, makeHead, makeSegment, row, type SourceRow } from "./testing/sources.js";

const directory = makeDirectory();
const cache = new SourceCache({ maxOpenSegments: 9, maxIndexBytes: 1e9 });
afterAll(() => {
  cache.close();
  directory.remove();
});
let made = 0;

const levels = ["info", "error", "", "warn"];
/** 40 rows a stream, a ms apart, of 10 bytes. */
const rowsOf = (app: string, level = (i: number) => levels[i % 4]!): SourceRow[] =>
  Array.from({ length: 40 }, (_, i) =>
    row(app, i * ms, `line ${String(i).padStart(5, "0")}`, {
      detected_level: level(i),
      trace: "t",
    }),
  );
const rows = [...rowsOf("a"), ...rowsOf("b", (i) => (i < 30 ? "info" : "error"))];

const kinds = [
  [
    "a segment",
    (own: readonly SourceRow[]) => makeSegment(directory.path, own, { id: `s${made++}` }),
  ],
  ["a head", (own: readonly SourceRow[]) => makeHead(own, { id: `h${made++}` })],
] as const;

describe.each(kinds)("counts by level over %s", (name, make) => {
  const count = (query: string, to = 100, own: readonly SourceRow[] = rows) => {
    const leaf = leafOf(query, { from: to * ms, to: to * ms });
    return cache.use((open) => {
      const spied = countReads(open(make(own)));
      const sources = [{ ref: make(own), sequence: 0 }];
      const { partial } = scanMetric({ plan: leaf, sources }, () => spied.source, contextOf());
      const read = [spied.lines.length, spied.times.length];
      return { values: valuesOf(leaf, [partial]), read };
    });
  };

  it.each([
    [
      "of all streams",
      "sum by (detected_level) (count_over_time({app=~`.+`}[1s]))",
      {
        '{detected_level="info"}': 40,
        '{detected_level="error"}': 20,
        "{}": 10,
        '{detected_level="warn"}': 10,
      },
    ],
    [
      "with a label",
      "sum by (detected_level, app) (count_over_time({app=`b`}[1s]))",
      { '{app="b", detected_level="info"}': 30, '{app="b", detected_level="error"}': 10 },
    ],
    [
      "in bytes",
      "sum by (detected_level) (bytes_over_time({app=`b`}[1s]))",
      { '{detected_level="info"}': 300, '{detected_level="error"}': 100 },
    ],
  ])("%s", (_case, query, want) => {
    const { values, read } = count(query);
    expect(values).toEqual(want);
    // A head counts levels of the table only; these rows came with texts.
    if (name === "a segment") expect(read).toEqual([0, 0]);
  });

  it("reads what a window cuts", () => {
    const query = "sum by (detected_level) (count_over_time({app=`b`}[1s]))";
    const { values, read } = count(query, 33);
    expect(values).toEqual({ '{detected_level="info"}': 30, '{detected_level="error"}': 4 });
    if (name === "a segment") expect(read).toEqual([0, 1]);
  });

  it("counts levels that are none of the table", () => {
    const own = rowsOf("a", (i) => (i < 20 ? "größe" : "info"));
    const query = "sum by (detected_level) (count_over_time({app=`a`}[1s]))";
    const want = { '{detected_level="größe"}': 20, '{detected_level="info"}': 20 };
    expect(count(query, 100, own).values).toEqual(want);
  });

  it("counts more levels than a segment keeps", () => {
    const own = rowsOf("a", (i) => `l${i}`);
    const query = "sum by (detected_level) (count_over_time({app=`a`}[1s]))";
    expect(Object.keys(count(query, 100, own).values)).toHaveLength(40);
  });

  it("leaves a stream alone that has such a label itself", () => {
    const own = rowsOf("a").map((one) => ({ ...one, labels: { app: "a", detected_level: "x" } }));
    const query = "sum by (detected_level) (count_over_time({app=`a`}[1s]))";
    expect(count(query, 100, own).values).toEqual({ '{detected_level="x"}': 40 });
  });
});
