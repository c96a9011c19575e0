import { describe, expect, it } from "@jest/globals";
import { type Cluster, Miner } from "./miner.js";
import { linesOf, samples } from "./testing/formats.js";
import { fieldNeedles, messageOf } from "./tokenize.js";

const fields = fieldNeedles(["log", "message", "msg"]);

function learn(miner: Miner, text: string): Cluster | undefined {
  const line = Buffer.from(text);
  const part = messageOf(line, fields);
  return part === undefined ? undefined : miner.learn(line, part);
}

const minerOf = (maxClusters = 300) => new Miner({ maxClusters, maxEvictionRatio: 0.25 });

/** Part of the lines whose cluster has exactly the lines of their template. */
function groupingAccuracy(lines: readonly [number, string][]): number {
  const miner = minerOf();
  const clusters = lines.map(([, line]) => learn(miner, line));
  const pairs = new Map<string, number>();
  const sizes = new Map<unknown, number>();
  const ids = new Map<unknown, number>();
  for (const [i, [template]] of lines.entries()) {
    const cluster = clusters[i];
    if (!ids.has(cluster)) ids.set(cluster, ids.size);
    const key = `${template} ${ids.get(cluster)}`;
    pairs.set(key, (pairs.get(key) ?? 0) + 1);
    sizes.set(template, (sizes.get(template) ?? 0) + 1);
    sizes.set(cluster, (sizes.get(cluster) ?? 0) + 1);
  }
  let right = 0;
  for (const [i, [template]] of lines.entries()) {
    const both = pairs.get(`${template} ${ids.get(clusters[i])}`);
    if (both === sizes.get(template) && both === sizes.get(clusters[i])) right++;
  }
  return right / lines.length;
}

describe("Miner", () => {
  it.each(samples)("finds the templates of $name", (sample) => {
    expect(groupingAccuracy(linesOf(sample, 2000, 1))).toBeGreaterThanOrEqual(0.9);
  });

  it.each([
    [
      [
        "level=info user 42 logged in from 10.0.1.2 after 5ms",
        "level=info user 7 logged in from 10.9.1.2 after 9ms",
      ],
      "level=info user <_> logged in from <_> after <_>",
    ],
    [
      [
        '{"msg":"request 1 to 2 failed with code 3","a":1}',
        '{"msg":"request 9 to 8 failed with code 7","a":2}',
      ],
      "<_>request <_> to <_> failed with code <_>",
    ],
    [
      ["the user alice has left the room", "the user bob has left the room"],
      "the user <_> has left the room",
    ],
  ])("%j", (lines, pattern) => {
    const miner = minerOf();
    const clusters = new Set(lines.map((line) => learn(miner, line)));
    expect([...clusters].map((cluster) => cluster?.text)).toEqual([pattern]);
  });

  it("keeps no more clusters than it may, those that were met last", () => {
    const miner = minerOf(3);
    const words = ["one", "two", "three", "four", "five"];
    for (const word of words)
      learn(miner, `${word} ${"x".repeat(word.length)} is alone here ${word}`);
    expect(Array.from(miner.clusters, ({ text }) => text.split(" ")[0])).toEqual([
      "three",
      "four",
      "five",
    ]);
  });

  it("leaves lines alone that have too few words, or too many, or no message", () => {
    const miner = minerOf();
    const long = Array.from({ length: 100 }, () => "word").join(" ");
    for (const line of ["", "two words", long, '{"a":1,"b":"c d e f"}']) {
      expect(learn(miner, line)).toBeUndefined();
    }
  });
});
