import { expect, it } from "@jest/globals";
import { freeBytes, takesMemory } from "./block.js";

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
  [5_000_000, 5_000_000, true],
  [4_400_000, 5_000_000, true],
  [4_300_000, 5_000_000, false],
  [99, 100, false],
  [100, 100, true],
])("says of %p bytes of %p that they take the memory: %p", (length, memory, takes) => {
  expect(takesMemory(new Uint8Array(memory).subarray(0, length))).toBe(takes);
});
