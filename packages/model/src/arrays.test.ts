import { describe, expect, it } from "@jest/globals";
import { freeBuffer, freeBytes, lowerBound, placeAmong, takesMemory } from "./arrays.js";

describe("ascending numbers", () => {
  it.each([
    [[], 3, 0, -1],
    [[3], 2, 0, -1],
    [[3], 3, 0, 0],
    [[3], 4, 1, -1],
    [[1, 3, 3, 3, 9], 3, 1, 1],
    [[1, 3, 3, 3, 9], 4, 4, -1],
    [[0, 4_294_967_295], 4_294_967_295, 1, 1],
  ])("%j: %d", (numbers, wanted, bound, place) => {
    const ascending = Uint32Array.from(numbers);
    expect([lowerBound(ascending, wanted), placeAmong(ascending, wanted)]).toEqual([bound, place]);
  });
});

it("empties all that lies in much memory that is given back", () => {
  const [bytes, few] = [new Uint8Array(2 ** 22), new Uint8Array(2 ** 22 - 1)];
  const part = bytes.subarray(10);
  freeBytes(few);
  expect(few.length).toBe(2 ** 22 - 1);
  // Twice is as good as once.
  for (let i = 0; i < 2; i++) freeBytes(bytes);
  const isGiven = "transfer" in ArrayBuffer.prototype;
  expect([bytes.length, part.length]).toEqual(isGiven ? [0, 0] : [2 ** 22, 2 ** 22 - 10]);
});

it.each([
  ["has memory of its own", Buffer.from(new ArrayBuffer(65_536)), 0],
  ["is a view of a larger one", Buffer.from(new ArrayBuffer(65_536), 0, 65_535), 65_535],
  ["is small", Buffer.from(new ArrayBuffer(4095)), 4095],
])("a buffer that %s is freed, or left alone", (_, buffer, left) => {
  freeBuffer(buffer);
  expect(buffer.length).toBe(left);
});

it.each([
  [5_000_000, 5_000_000, true],
  [4_400_000, 5_000_000, true],
  [4_300_000, 5_000_000, false],
  [99, 100, false],
  [100, 100, true],
])("says of %p bytes of %p that they take the memory: %p", (length, memory, takes) => {
  expect(takesMemory(new Uint8Array(memory).subarray(0, length))).toBe(takes);
});
