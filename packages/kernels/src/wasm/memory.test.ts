import { describe, expect, it } from "@jest/globals";
import { loadKernels, loadModule } from "../load.js";
import { toPlain, wideLimits } from "../testing/push-oracle.js";
import { wasmKernels } from "./kernels.js";
import { KernelMemory, maxKeptBytes } from "./memory.js";

function openMemory(): KernelMemory {
  const module = loadModule();
  if (module === undefined) throw new Error("kernels.wasm is not built");
  return new KernelMemory(module);
}

describe("KernelMemory", () => {
  it("grows for an input and keeps what it has grown to", () => {
    const memory = openMemory();
    const kernels = wasmKernels(memory);
    expect(memory.sizeBytes).toBe(0);
    kernels.scanJsonPush(Buffer.from(`{"x":"${"a".repeat(1 << 20)}"}`), wideLimits);
    const size = memory.sizeBytes;
    expect(size).toBeGreaterThan(1 << 20);
    kernels.scanJsonPush(Buffer.from(`{"x":"${"a".repeat(1 << 20)}"}`), wideLimits);
    expect(memory.sizeBytes).toBe(size);
  });

  it("gives a giant memory back", () => {
    const memory = openMemory();
    const kernels = wasmKernels(memory);
    const giant = Buffer.alloc(maxKeptBytes, 0x20);
    giant.write("{}");
    const limits = { ...wideLimits, maxDecodedBytes: giant.length };
    expect(toPlain(kernels.scanJsonPush(giant, limits))).toEqual([]);
    expect(memory.sizeBytes).toBe(0);
    giant.write("[]");
    expect(() => kernels.scanJsonPush(giant, limits)).toThrow("must be an object");
    expect(memory.sizeBytes).toBe(0);
    expect(toPlain(kernels.scanJsonPush(Buffer.from("{}"), limits))).toEqual([]);
  });

  it("refuses what no memory can hold", () => {
    const memory = openMemory();
    memory.open();
    expect(() => memory.take(5 * 2 ** 30)).toThrow(expect.objectContaining({ code: "too_large" }));
  });

  it("gives ranges that do not overlap, with padding between them", () => {
    const memory = openMemory();
    memory.open();
    const first = memory.take(100_000);
    const second = memory.copyIn(Uint8Array.of(1, 2, 3));
    expect(second).toBeGreaterThanOrEqual(first + 100_000 + 64);
    expect([...memory.bytes(second, 5)]).toEqual([1, 2, 3, 0, 0]);
  });
});

describe("columns that are longer than guessed", () => {
  const many = 30_000;

  it.each([["twin"], ["wasm"]])("hold the rows of a push, %s", (form) => {
    const kernels = loadKernels(form);
    const rows = Array.from({ length: many }, () => '["",""]')
      .join(",")
      .replaceAll('""', '"1"');
    const pairs = Array.from({ length: many }, () => '"":""').join(",");
    const streams = Array.from({ length: many }, () => "{}").join(",");
    const body = `{"streams":[{"values":[${rows},["2","x",{${pairs}}]]},${streams}]}`;
    const push = kernels.scanJsonPush(Buffer.from(body), wideLimits);
    expect([push.rowCount, push.pairCount, push.streamCount]).toEqual([many + 1, many, many + 1]);
    expect(push.streamRowStart.at(-1)).toBe(many + 1);
    expect([...push.metaStart.subarray(many - 1)]).toEqual([0, 0, many]);
    expect(push.nanos.reduce((sum, nanos) => sum + nanos, 0)).toBe(many + 2);
  });

  it.each([["twin"], ["wasm"]])("end at the limits, %s", (form) => {
    const kernels = loadKernels(form);
    const body = Buffer.from(`{"streams":[{"values":[${'["1"],'.repeat(many)}["1"]]}]}`);
    expect(kernels.scanJsonPush(body, { ...wideLimits, maxRows: many + 1 }).rowCount).toBe(
      many + 1,
    );
    expect(() => kernels.scanJsonPush(body, { ...wideLimits, maxRows: many })).toThrow(
      expect.objectContaining({ code: "too_large" }),
    );
  });
});

describe("loadKernels", () => {
  it("can be told which form to take", () => {
    expect(loadKernels("twin").form).toBe("twin");
    expect(loadKernels("wasm").form).toBe("wasm");
    expect(loadKernels("").form).toBe("wasm");
  });
});
