import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import { makePushBody } from "@skald/testkit";
import { type AcceptedStream, assembleBatch, assembleBatchSteps } from "./assemble.js";
import { decodeBody } from "./decode.js";

function accepted(ordinal: number): AcceptedStream {
  const labels = labelsFromObject({ s: String(ordinal) });
  return { ordinal, text: formatLabels(labels) };
}

function decoded(
  rows: readonly { line: string; metadata?: [string | Uint8Array, string | Uint8Array][] }[],
) {
  const body = makePushBody([{ labels: '{s="0"}', rows: rows.map((row) => ({ ns: 1n, ...row })) }]);
  return decodeBody({ format: "protobuf", encoding: "identity", body });
}

const none = new Uint32Array(0);

describe("assembleBatch", () => {
  it("shares the columns of a push of which nothing was dropped", () => {
    const raw = decoded([{ line: "a" }, { line: "b" }]);
    const batch = assembleBatch(raw, {
      streams: [accepted(0)],
      dropped: none,
      levels: new Uint8Array(2),
    });
    expect(batch.lineStart).toBe(raw.lineStart);
    expect(batch.seconds).toBe(raw.seconds);
    expect(batch.bytes).toBe(raw.bytes);
    expect(batch).not.toHaveProperty("source");
  });

  it("blanks invalid UTF-8 of metadata values and leaves lines as they are", () => {
    const raw = decoded([{ line: "x", metadata: [["a", Uint8Array.of(0x61, 0xff, 0x62)]] }]);
    const batch = assembleBatch(raw, {
      streams: [accepted(0)],
      dropped: none,
      levels: new Uint8Array(1),
    });
    const start = batch.metaValueStart[0]!;
    expect(Buffer.from(batch.bytes).toString("latin1", start, start + 3)).toBe("a b");
  });

  it("sorts the pairs of a row with thousands of new names by name, in many steps", () => {
    // 7919 and 6000 have no common factor, so that each name comes once.
    const names = Array.from({ length: 6000 }, (_, i) => `name_${(i * 7919) % 6000}`);
    const metadata = names.map((name): [string, string] => [name, "v"]);
    const raw = decoded([
      { line: "x", metadata },
      { line: "y", metadata: [["name_7", "w"]] },
    ]);
    const steps = assembleBatchSteps(raw, {
      streams: [accepted(0)],
      dropped: none,
      levels: new Uint8Array(2),
    });
    let count = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) count++;
    const { metaName, metaNames, metaStart } = step.value;
    expect(Array.from(metaStart)).toEqual([0, 6000, 6001]);
    const found = Array.from(metaName, (name) => metaNames[name]);
    expect(found).toEqual([...[...names].sort(), "name_7"]);
    expect(count).toBeGreaterThan(15);
  });

  it("numbers names as rows that are left use them, whatever order they come in", () => {
    const raw = decoded([
      { line: "gone", metadata: [["zz", "1"]] },
      {
        line: "1",
        metadata: [
          ["b.c", "1"],
          ["a", "2"],
        ],
      },
      { line: "2", metadata: [["a", "3"]] },
      {
        line: "3",
        metadata: [
          ["b_c", "4"],
          ["b.c", "5"],
        ],
      },
    ]);
    const batch = assembleBatch(raw, {
      streams: [accepted(0)],
      dropped: Uint32Array.of(0),
      levels: new Uint8Array(3),
    });
    expect(batch.metaNames).toEqual(["b_c", "a"]);
    expect([...batch.metaName]).toEqual([1, 0, 1, 0]);
    expect([...batch.metaStart]).toEqual([0, 2, 3, 4]);
  });

  it.each([3, 70])("sorts %i pairs of a row by name, whatever their order was", (count) => {
    const sorted = Array.from({ length: count }, (_, i): [string, string] => [
      `n${String(i).padStart(3, "0")}`,
      `v${i}`,
    ]);
    const twice: [string, string][] = [["n001", "first"], ...sorted.toReversed()];
    const raw = decoded([
      { line: "1", metadata: sorted },
      { line: "2", metadata: twice },
    ]);
    const batch = assembleBatch(raw, {
      streams: [accepted(0)],
      dropped: none,
      levels: new Uint8Array(2),
    });
    expect([...batch.metaStart]).toEqual([0, count, 2 * count]);
    const text = (pair: number) => {
      const start = batch.metaValueStart[pair]!;
      const value = batch.bytes.subarray(start, start + batch.metaValueLength[pair]!);
      return [batch.metaNames[batch.metaName[pair]!], Buffer.from(value).toString()];
    };
    const pairs = Array.from(batch.metaName, (_, pair) => text(pair));
    expect(pairs).toEqual([...sorted, ...sorted]);
  });

  it("survives names whose hashes are made to collide", () => {
    const metadata: [string, string][] = [
      ["costarring", "1"],
      ["liquid", "2"],
    ];
    const raw = decoded([
      { line: "1", metadata },
      { line: "2", metadata: metadata.toReversed() },
    ]);
    const batch = assembleBatch(raw, {
      streams: [accepted(0)],
      dropped: none,
      levels: new Uint8Array(2),
    });
    expect(batch.metaNames).toEqual(["costarring", "liquid"]);
    expect([...batch.metaName]).toEqual([0, 1, 0, 1]);
  });

  it.each<[string, [string, string][], RegExp]>([
    ["an empty name", [["", "x"]], /^structured metadata name ''/],
    ["a name of underscores", [["__", "x"]], /^structured metadata name '__'/],
    [
      "too many names",
      Array.from({ length: 65537 }, (_, i) => [`n${i}`, "x"]),
      /more than 65536 structured/,
    ],
  ])("refuses %s", (_, metadata, message) => {
    const raw = decoded([{ line: "x", metadata }]);
    const decisions = { streams: [accepted(0)], dropped: none, levels: new Uint8Array(1) };
    expect(() => assembleBatch(raw, decisions)).toThrow(message);
  });

  it.each([
    ["a level is missing", { streams: [accepted(0)], dropped: none, levels: new Uint8Array(1) }],
    ["a stream is missing", { streams: [], dropped: none, levels: new Uint8Array(2) }],
    ["a stream is not there", { streams: [accepted(1)], dropped: none, levels: new Uint8Array(2) }],
    [
      "a dropped row is not there",
      { streams: [accepted(0)], dropped: Uint32Array.of(7), levels: new Uint8Array(1) },
    ],
    [
      "dropped rows repeat",
      { streams: [accepted(0)], dropped: Uint32Array.of(1, 1), levels: new Uint8Array(0) },
    ],
  ])("fails when %s", (_, decisions) => {
    const raw = decoded([{ line: "a" }, { line: "b" }]);
    expect(() => assembleBatch(raw, decisions)).toThrow(/^decisions do not fit/);
  });
});
