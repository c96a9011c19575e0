import { describe, expect, it } from "@jest/globals";
import { makePushBody, testRuns } from "@skald/testkit";
import fc from "fast-check";
import type { PushLimits } from "./config.js";
import { jsonPush, makeHarness, testNowNs } from "./testing/harness.js";

type Pairs = Record<string, string>;

/** The metadata that one entry is stored with. */
async function metadataOf(
  labels: Pairs,
  line: string,
  metadata: Pairs,
  limits: Partial<PushLimits> = {},
): Promise<{ metadata: Readonly<Pairs>; hasSource: boolean }> {
  const { push, stored, ingester } = makeHarness(limits);
  expect(await push(jsonPush(labels, [[0, line, metadata]]))).toEqual({ status: 204 });
  return {
    metadata: stored()[0]!.metadata,
    hasSource: ingester.pushes[0]!.batch.source !== undefined,
  };
}

describe("detected_level", () => {
  it.each<[string, Pairs, string, Pairs, string]>([
    ["from the line", {}, "level=warn x", {}, "warn"],
    ["from a word of the line", {}, "an error occurred", {}, "error"],
    ["unknown", {}, "panic: boom", {}, "unknown"],
    ["from a label", { level: "INFO" }, "level=error", {}, "info"],
    ["from the better label", { severity: "debug", level: "err" }, "x", {}, "error"],
    ["from a label as unknown", { level: "unknown" }, "level=error", {}, "unknown"],
    ["from metadata", {}, "level=error", { level: "WARN" }, "warn"],
    ["from the better metadata", {}, "x", { severity: "critical", lvl: "info" }, "critical"],
    ["from a metadata name that is sanitised", {}, "x", { "log.level": "debug" }, "debug"],
    ["from a label rather than metadata", { level: "info" }, "x", { level: "error" }, "info"],
    [
      "from metadata of its name first",
      { level: "info" },
      "x",
      { detected_level: "Error", level: "warn" },
      "error",
    ],
    ["from the line when metadata is empty", {}, "level=error", { level: "" }, "error"],
    ["from severity number 0", {}, "error", { severity_number: "0" }, "unknown"],
    ["from severity number 1", {}, "error", { severity_number: "1" }, "trace"],
    ["from severity number 8", {}, "error", { severity_number: "8" }, "debug"],
    ["from severity number 9", {}, "error", { severity_number: "9" }, "info"],
    ["from severity number 13", {}, "error", { severity_number: "13" }, "warn"],
    ["from severity number 20", {}, "error", { severity_number: "20" }, "error"],
    ["from severity number 24", {}, "error", { severity_number: "24" }, "fatal"],
    ["from severity number 25", {}, "error", { severity_number: "25" }, "unknown"],
    ["from a severity number that is none", {}, "error", { severity_number: "high" }, "info"],
    [
      "from a level rather than a severity number",
      {},
      "x",
      { severity_number: "17", level: "info" },
      "info",
    ],
  ])("%s", async (_, labels, line, metadata, want) => {
    const { detected_level, ...rest } = metadata;
    const got = await metadataOf(labels, line, metadata);
    const kept = Object.entries(rest).filter(([, value]) => value !== "");
    const names = kept.map(([name, value]) => [name.replace(".", "_"), value]);
    expect(got.metadata).toEqual({ ...Object.fromEntries(names), detected_level: want });
    expect(got.hasSource).toBe(true);
  });

  it.each<[string, Pairs, Pairs, boolean]>([
    ["of metadata stays as it is", {}, { detected_level: "Notice" }, true],
    ["of a label becomes metadata", { level: "Notice" }, {}, false],
    ["of other metadata becomes metadata", {}, { severity: "Notice" }, false],
    ["of a label that spells unknown otherwise", { level: "Unknown" }, {}, false],
  ])("outside the table %s", async (_, labels, metadata, hasSource) => {
    const got = await metadataOf(labels, "level=error", metadata);
    const value = labels.level ?? "Notice";
    expect(got).toEqual({ metadata: { ...metadata, detected_level: value }, hasSource });
  });

  it("outside the table reaches each row of each stream, and only those", async () => {
    const { push, stored } = makeHarness();
    await push({
      streams: [
        ...jsonPush({ level: "notice", s: "1" }, [
          [0, "a"],
          [0, "b", { trace: "1" }],
          ["1", "old"],
        ]).streams,
        ...jsonPush({ s: "2" }, [
          [0, "error c"],
          [0, "d", { level: "alert" }],
        ]).streams,
        ...jsonPush({ level: "emerg", s: "3" }, [
          [0, "e", { detected_level: "debug" }],
          [0, "f"],
        ]).streams,
      ],
    });
    expect(stored().map(({ line, metadata }) => [line, metadata])).toEqual([
      ["a", { detected_level: "notice" }],
      ["b", { trace: "1", detected_level: "notice" }],
      ["error c", { detected_level: "error" }],
      ["d", { level: "alert", detected_level: "alert" }],
      ["e", { detected_level: "debug" }],
      ["f", { detected_level: "emerg" }],
    ]);
  });

  it.each<[string, Partial<PushLimits>, Pairs, Pairs]>([
    ["without discovery", { discover_log_levels: false }, {}, {}],
    [
      "without discovery, as pushed",
      { discover_log_levels: false },
      { detected_level: "error" },
      { detected_level: "error" },
    ],
    [
      "without discovery, not normalised",
      { discover_log_levels: false },
      { detected_level: "ERR" },
      { detected_level: "ERR" },
    ],
    [
      "from other fields",
      { log_level_fields: ["prio"] },
      { prio: "warn" },
      { prio: "warn", detected_level: "warn" },
    ],
  ])("%s", async (_, limits, metadata, want) => {
    expect((await metadataOf({ level: "info" }, "level=error", metadata, limits)).metadata).toEqual(
      want,
    );
  });

  it("is not looked for where structured metadata is off", async () => {
    const { push, stored } = makeHarness({ allow_structured_metadata: false });
    await push(jsonPush({ level: "info" }, [[0, "level=error"]]));
    expect(stored()[0]!.metadata).toEqual({});
  });

  it("of each row is that of the row alone, however rows are mixed", async () => {
    const line = fc.constantFrom("level=warn", "x", "an error", "info debug");
    const pairs = fc.dictionary(
      fc.constantFrom("level", "trace", "detected_level"),
      fc.constantFrom("WARN", "odd", ""),
    );
    const rows = fc.array(fc.tuple(line, pairs), { minLength: 1, maxLength: 12 });
    const labels = fc.constantFrom<Pairs>({ s: "1" }, { level: "debug" }, { level: "odd" });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(labels, rows), { minLength: 1, maxLength: 4 }),
        async (streams) => {
          const { push, stored } = makeHarness();
          await push({
            streams: streams.flatMap(
              ([l, r]) =>
                jsonPush(
                  l,
                  r.map(([text, m]) => [0, text, m]),
                ).streams,
            ),
          });
          const want = [];
          for (const [l, r] of streams)
            for (const [text, m] of r) want.push((await metadataOf(l, text, m)).metadata);
          expect(stored().map((row) => row.metadata)).toEqual(want);
        },
      ),
      { numRuns: testRuns(40) },
    );
  });
});

it("metadata names and values are cleaned before they are stored", async () => {
  const { push, stored } = makeHarness();
  const body = makePushBody([
    {
      labels: '{app="a"}',
      rows: [
        {
          ns: testNowNs,
          line: "x",
          metadata: [
            ["a.b", "1"],
            ["9num", "2"],
            ["ünï", "3"],
            ["empty", ""],
            ["bad", Uint8Array.of(0x61, 0xff)],
          ],
        },
      ],
    },
  ]);
  await push(body, { contentType: "application/x-protobuf" });
  expect(stored()[0]!.metadata).toEqual({
    a_b: "1",
    key_9num: "2",
    _n_: "3",
    bad: "a ",
    detected_level: "unknown",
  });
});
