import { describe, expect, it } from "@jest/globals";
import { NamedStreams, NumberedStreams } from "./numbered-streams.js";

describe("NamedStreams", () => {
  it("names each stream once a file, and again as its share of the file allows", () => {
    const named = new NamedStreams();
    const ask = (stream: number, file: number, offset: number) =>
      named.needsName(stream, 10, { file, offset });
    expect([ask(3, 1, 0), ask(0, 1, 0), ask(3, 1, 0), ask(3, 1, 79)]).toEqual([
      ...[true, true, false, false],
    ]);
    expect([ask(3, 1, 80), ask(3, 1, 80), ask(0, 1, 159), ask(0, 1, 160)]).toEqual([
      ...[true, false, false, true],
    ]);
    expect([ask(3, 2, 0), ask(3, 2, 0), ask(9, 2, 0)]).toEqual([true, false, true]);
  });
});

describe("a number of a stream", () => {
  it("is given to another one only when the file that has named it is no longer written", () => {
    const table = new NumberedStreams();
    const add = (n: string) => table.add(`{n="${n}"}`, 0, 0);
    const [a, b] = [add("a"), add("b")];
    table.needsName(a, { file: 1, offset: 0 });
    table.needsName(b, { file: 2, offset: 0 });
    table.needsName(a, { file: 2, offset: 0 });
    expect(table.removeIdle(1, () => false)).toBe(2);
    expect(add("c")).toBe(2);
    table.needsName(2, { file: 3, offset: 0 });
    expect([add("d"), add("e"), add("f")]).toEqual([a, b, 3]);
  });
});
