import { expect, it } from "@jest/globals";
import { PushPace } from "./push-pace.js";

it("lets a push in when those before it could be sealed", () => {
  const pace = new PushPace();
  // 40 bytes of lines take 1 us.
  expect(pace.next(400_000, 1000)).toBe(0);
  expect(pace.next(400_000, 1000)).toBeCloseTo(10);
  expect(pace.next(400_000, 1005)).toBeCloseTo(15);
  expect(pace.next(400_000, 2000)).toBe(0);
});

it("makes no push wait for more than 200 ms", () => {
  const pace = new PushPace();
  pace.next(100_000_000, 1000);
  expect(pace.next(1, 1000)).toBe(200);
  expect(pace.next(1, 1100)).toBe(100);
});

it("learns how long heads take, also of those that are sealed side by side", () => {
  const pace = new PushPace();
  for (let i = 1; i <= 40; i++) {
    // Each takes 200 ms, and one ends every 100 ms.
    pace.learn(10_000_000, i * 100 - 200, i * 100);
  }
  pace.next(1_000_000, 10_000);
  expect(pace.next(1, 10_000)).toBeCloseTo(10, 2);
});
