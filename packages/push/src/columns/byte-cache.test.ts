import { describe, expect, it } from "@jest/globals";
import { ByteCache } from "./byte-cache.js";

const owner = {};
const key = (text: string) => Buffer.from(text);

function cacheOf(maxEntries: number, maxKeyBytes = 1 << 20) {
  const cache = new ByteCache<number>({ maxEntries, maxKeyBytes });
  return {
    get: (text: string, by: object = owner) => cache.get(by, key(`#${text}#`), 1, key(text).length),
    set: (text: string, value: number, by: object = owner) =>
      cache.set(by, key(`#${text}#`), 1, key(text).length, value),
  };
}

describe("ByteCache", () => {
  it("finds a range of bytes again, for its owner only", () => {
    const cache = cacheOf(10);
    cache.set("{a}", 1);
    expect(cache.get("{a}")).toBe(1);
    expect(cache.get("{b}")).toBeUndefined();
    expect(cache.get("{a}", {})).toBeUndefined();
  });

  it("copies its keys", () => {
    const cache = new ByteCache<number>({ maxEntries: 10, maxKeyBytes: 1000 });
    const bytes = key("{a}");
    cache.set(owner, bytes, 0, 3, 1);
    bytes.fill(0);
    expect(cache.get(owner, key("{a}"), 0, 3)).toBe(1);
    expect(cache.get(owner, bytes, 0, 3)).toBeUndefined();
  });

  it("keeps what is used and forgets what is not, within its bounds", () => {
    const cache = cacheOf(100);
    cache.set("hot", 1);
    cache.set("cold", 2);
    for (let i = 0; i < 1000; i++) {
      cache.set(`s${i}`, i);
      expect(cache.get("hot")).toBe(1);
    }
    expect(cache.get("cold")).toBeUndefined();
    expect(cache.get("s999")).toBe(999);
    const held = Array.from({ length: 1000 }, (_, i) => cache.get(`s${i}`)).filter(
      (v) => v !== undefined,
    );
    expect(held.length).toBeLessThanOrEqual(100);
  });

  it("bounds the bytes of its keys, and takes no key that would fill it", () => {
    const cache = cacheOf(1000, 8000);
    cache.set("x".repeat(1001), 1);
    expect(cache.get("x".repeat(1001))).toBeUndefined();
    for (let i = 0; i < 50; i++) cache.set(`${i}`.padEnd(900), i);
    const held = Array.from({ length: 50 }, (_, i) => cache.get(`${i}`.padEnd(900)));
    expect(held.filter((v) => v !== undefined).length).toBeLessThanOrEqual(12);
    expect(held.at(-1)).toBe(49);
  });

  it("answers a shared hash with a miss, not with the other value", () => {
    // The hash gives these two texts the same 32 bits.
    const cache = cacheOf(10);
    cache.set("stream1891", 1);
    cache.set("stream123276", 2);
    expect(cache.get("stream1891")).toBeUndefined();
    expect(cache.get("stream123276")).toBe(2);
  });
});
