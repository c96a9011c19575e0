import { expect, it } from "@jest/globals";
import type { SampledLines } from "@skald/contracts";
import { makeBatch } from "@skald/testkit";
import { LineSampler } from "./line-sampler.js";

const seconds = 20_000 * 86_400;
const levels = { info: 4, foreign: 255 };

function makeSampler({ owners = 1, maxLines = 100, maxLineBytes = 1000 } = {}) {
  const learnt: SampledLines[][] = Array.from({ length: owners }, () => []);
  const errors: unknown[] = [];
  const learners = learnt.map((lines) => ({
    learn: async (one: SampledLines) => void lines.push(one),
  }));
  const sampler = new LineSampler({
    learnerOf: (_tenant, stream) => learners[stream.length % owners]!,
    ...{ maxLines, maxLineBytes },
    onError: (error) => errors.push(error),
  });
  return { sampler, learnt, errors };
}

function batchOf(app: string, lines: readonly string[], level = levels.info) {
  const metadata = level === levels.foreign ? { a: "1", detected_level: "odd" } : { a: "1" };
  const rows = lines.map((line, i) => ({
    ...{ ns: BigInt(seconds + i) * 1_000_000_000n + 5n, line, level, metadata },
  }));
  return makeBatch([{ labels: { app }, rows }]);
}

function textsOf({ bytes, ends }: SampledLines): string[] {
  const text = Buffer.from(bytes);
  return Array.from(ends, (end, i) => text.toString("utf8", ends[i - 1] ?? 0, end));
}

it("hands over every line where there are few, with stream, level and time", async () => {
  const { sampler, learnt } = makeSampler();
  sampler.note({ tenant: "t", batch: batchOf("a", ["one", "two"]) });
  sampler.note({ tenant: "t", batch: batchOf("b", ["three"], levels.foreign) });
  sampler.note({ tenant: "u", batch: batchOf("a", ["x".repeat(1001), "four"]) });
  await sampler.close();
  const [t, u] = learnt[0]!;
  expect(t).toMatchObject({ tenant: "t", weight: 1, levels: ["info", "odd"] });
  expect(t?.streams).toEqual([`{app="a"}`, `{app="b"}`]);
  expect([t?.streamOf, t?.levelOf].map((column) => [...column!])).toEqual([
    [0, 0, 1],
    [0, 0, 1],
  ]);
  expect([...t!.seconds]).toEqual([seconds, seconds + 1, seconds]);
  expect([textsOf(t!), textsOf(u!), u?.tenant]).toEqual([["one", "two", "three"], ["four"], "u"]);
});

it("lets each line stand for several where there are many", async () => {
  const { sampler, learnt } = makeSampler({ maxLines: 64 });
  for (let i = 0; i < 500; i++)
    sampler.note({ tenant: "t", batch: batchOf("a", ["first", "second", "third", "fourth"]) });
  await sampler.close();
  const [lines] = learnt[0]!;
  expect(lines!.ends.length).toBeGreaterThan(16);
  expect(lines!.ends.length).toBeLessThan(64);
  const ratio = (lines!.ends.length * lines!.weight) / 2000;
  expect(ratio).toBeGreaterThan(0.8);
  expect(ratio).toBeLessThan(1.2);
  // Rows of a regular push all have their turn.
  expect(new Set(textsOf(lines!)).size).toBe(4);
});

it("hands the lines of a stream to whoever has it", async () => {
  const { sampler, learnt } = makeSampler({ owners: 2 });
  for (const app of ["a", "bb", "c", "dd"])
    sampler.note({ tenant: "t", batch: batchOf(app, [app]) });
  await sampler.close();
  expect(learnt.map((lines) => lines.flatMap(textsOf))).toEqual([
    ["bb", "dd"],
    ["a", "c"],
  ]);
});

it("hands over many lines exactly, in pieces that a call can carry", async () => {
  const { sampler, learnt } = makeSampler({ maxLines: 30_000, maxLineBytes: 3000 });
  const lines = Array.from({ length: 1000 }, (_, i) => `${i} ${"x".repeat(990)}`);
  for (let i = 0; i < 9; i++)
    for (const app of ["a", "b"]) sampler.note({ tenant: "t", batch: batchOf(app, lines) });
  await sampler.close();
  const [pieces = []] = learnt;
  expect(pieces.length).toBeGreaterThan(4);
  for (const { bytes, weight } of pieces) {
    expect([weight, bytes.length <= 4 * 1024 * 1024]).toEqual([1, true]);
    expect(bytes.length).toBe(bytes.buffer.byteLength);
  }
  const seen = new Map<string, number>();
  for (const piece of pieces)
    for (const [i, text] of textsOf(piece).entries()) {
      const key = `${piece.streams[piece.streamOf[i]!]} ${text}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
    }
  expect([seen.size, new Set(seen.values())]).toEqual([2000, new Set([9])]);
});

it("goes on when nobody is there, or fails", async () => {
  const errors: unknown[] = [];
  const failing = { learn: async () => Promise.reject(new Error("gone")) };
  let isThere = false;
  const sampler = new LineSampler({
    learnerOf: () => {
      if (isThere) return failing;
      throw new Error("nobody");
    },
    ...{ maxLines: 10, maxLineBytes: 10 },
    onError: (error) => errors.push((error as Error).message),
  });
  for (const there of [false, true]) {
    isThere = there;
    sampler.note({ tenant: "t", batch: batchOf("a", ["one"]) });
    await sampler.flush();
  }
  await sampler.close();
  expect(errors).toEqual(["nobody", "gone"]);
});
