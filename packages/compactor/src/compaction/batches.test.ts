import { describe, expect, it } from "@jest/globals";
import { Batches } from "./batches.js";

describe("changes in batches", () => {
  it("are applied together where they come while others are applied", async () => {
    const ends: (() => void)[] = [];
    const batches = new Batches<readonly string[], string>([], async (state, changes) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return [...state, changes.join("+")];
    });
    const end = async () => {
      while (ends.length === 0) await new Promise(setImmediate);
      ends.shift()?.();
    };
    const first = batches.add("a");
    await Promise.resolve();
    const [second, third] = [batches.add("b"), batches.add("c")];
    await end();
    await first;
    expect(batches.state).toEqual(["a"]);
    await end();
    await second;
    await third;
    expect(batches.state).toEqual(["a", "b+c"]);
    expect(ends).toEqual([]);
  });

  it("fail with their batch, and all that come later do", async () => {
    const batches = new Batches<number, number>(0, async () => {
      throw new Error("it is full");
    });
    await expect(batches.add(1)).rejects.toThrow("it is full");
    await expect(batches.add(2)).rejects.toThrow("it is full");
    expect(batches.state).toBe(0);
  });
});
