import { expect, it } from "@jest/globals";
import { TextNumbers } from "./numbered-streams.js";

it("finds, forgets and counts texts, few or many", () => {
  const numbers = new TextNumbers();
  const text = (i: number) => `{app="a", pod="pod-${i}"}`;
  const count = 10_000;
  for (let i = 0; i < count; i++) {
    expect(numbers.get(text(i))).toBeUndefined();
    numbers.add(text(i), i);
    if (i === 5) numbers.delete(text(3));
  }
  numbers.delete(text(7000));
  numbers.delete("not there");
  const gone = new Set([3, 7000]);
  for (let i = 0; i < count; i++) expect(numbers.get(text(i))).toBe(gone.has(i) ? undefined : i);
  expect(numbers.size).toBe(count - gone.size);
});
