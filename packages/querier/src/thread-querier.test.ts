import { expect, it } from "@jest/globals";
import { type QuerierServices, querierHost } from "./thread-querier.js";

const whole = new Uint8Array(5_000_000);

it.each([
  ["moves", whole.subarray(0, 4_950_000), true],
  [
    "copies what lies beside others in memory, and moves the copy of",
    whole.subarray(0, 2_500_000),
    false,
  ],
])("%s bytes that a job asked for", async (_, bytes, isSame) => {
  const scanner = { run: async () => bytes };
  const host = querierHost({ scanner } as unknown as QuerierServices)(() => undefined);
  const { signal } = new AbortController();
  const reply = await host["scanner.run"]?.({ given: [], options: {} } as never, { signal });
  const { value, transfer } = reply as { value: Uint8Array; transfer: unknown };
  expect(value.length).toBe(bytes.length);
  expect(value.buffer === whole.buffer).toBe(isSame);
  expect(transfer).toEqual([value.buffer]);
});
