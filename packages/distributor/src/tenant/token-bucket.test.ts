import { expect, it } from "@jest/globals";
import { TokenBucket } from "./token-bucket.js";

it("starts full, takes all or nothing, refills with time up to the burst", () => {
  const bucket = new TokenBucket(100, 250, 0);
  expect(bucket.take(251, 0)).toBe(false);
  expect(bucket.take(250, 0)).toBe(true);
  expect(bucket.take(1, 0)).toBe(false);
  expect(bucket.secondsUntil(50)).toBe(0.5);
  expect(bucket.take(51, 500)).toBe(false);
  expect(bucket.take(50, 500)).toBe(true);
  expect(bucket.take(250, 60_000)).toBe(true);
  expect(bucket.take(1, 60_000)).toBe(false);
});

it("never gives tokens back when the clock steps back", () => {
  const bucket = new TokenBucket(100, 100, 10_000);
  expect(bucket.take(100, 10_000)).toBe(true);
  expect(bucket.take(1, 5_000)).toBe(false);
  expect(bucket.take(100, 6_000)).toBe(true);
});

it("takes over other limits, and says when a push can never pass", () => {
  const bucket = new TokenBucket(100, 100, 0);
  bucket.configure(10, 50, 0);
  expect(bucket.ratePerSecond).toBe(10);
  expect(bucket.take(51, 0)).toBe(false);
  expect(bucket.secondsUntil(51)).toBe(Number.POSITIVE_INFINITY);
  expect(bucket.take(50, 0)).toBe(true);
});
