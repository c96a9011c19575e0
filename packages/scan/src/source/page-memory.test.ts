import { describe, expect, it } from "@jest/globals";
import { paddingBytes } from "@skald/model";
import { ScanMemory } from "./block-reader.js";

const mib = 1024 * 1024;

describe("ScanMemory", () => {
  it("gives what it got back, with padding behind it", () => {
    const memory = new ScanMemory();
    const first = memory.take(300_000);
    expect(first.length).toBe(300_000);
    expect(first.buffer.byteLength).toBeGreaterThanOrEqual(300_000 + paddingBytes);
    memory.give(first);
    const second = memory.take(280_000);
    expect(second.buffer).toBe(first.buffer);
    expect(memory.freeBytes).toBe(0);
    expect(memory.take(280_000).buffer).not.toBe(first.buffer);
  });

  it.each([0, 1, 16_320, 16_321, mib - paddingBytes, mib - paddingBytes + 1])(
    "takes %d bytes and finds the buffer again",
    (bytes) => {
      const memory = new ScanMemory();
      const taken = memory.take(bytes);
      memory.give(taken);
      expect(memory.take(bytes).buffer).toBe(taken.buffer);
    },
  );

  it("keeps no more than its bound", () => {
    const memory = new ScanMemory();
    const taken = Array.from({ length: 40 }, () => memory.take(mib - paddingBytes));
    for (const buffer of taken) memory.give(buffer);
    expect(memory.freeBytes).toBe(16 * mib);
    memory.give(memory.take(100 * mib));
    expect(memory.freeBytes).toBe(16 * mib);
  });
});
