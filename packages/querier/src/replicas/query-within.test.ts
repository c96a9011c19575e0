import { expect, it } from "@jest/globals";
import type { HeldRows } from "@skald/contracts";
import { ReplicatedIngester } from "./replicated-ingester.js";

const hourMs = 3_600_000;
const nowMs = 1_700_000_000_000;
const { signal } = new AbortController();

it.each([
  { what: "recent rows", endsMs: nowMs - hourMs, oldestMs: Number.POSITIVE_INFINITY, asked: 3 },
  { what: "old rows", endsMs: nowMs - 5 * hourMs, oldestMs: Number.POSITIVE_INFINITY, asked: 0 },
  {
    what: "old rows that one holds",
    endsMs: nowMs - 5 * hourMs,
    oldestMs: nowMs - 6 * hourMs,
    asked: 3,
  },
  {
    what: "rows that are older still",
    endsMs: nowMs - 7 * hourMs,
    oldestMs: nowMs - 6 * hourMs,
    asked: 0,
  },
  { what: "old rows while one does not know", endsMs: nowMs - 9 * hourMs, oldestMs: 0, asked: 3 },
])("asks $asked ingesters for $what", async ({ endsMs, oldestMs, asked }) => {
  let calls = 0;
  const one = {
    select: async () => {
      calls++;
      return { sources: [] };
    },
  } as unknown as HeldRows;
  const ingester = new ReplicatedIngester({
    replicasOf: () => ({
      instances: ["a", "b", "c"].map((id) => ({ id, zone: "" })),
      maxMissing: 1,
      byZone: false,
    }),
    connect: () => one,
    queryWithinMs: 3 * hourMs,
    oldestMs: () => oldestMs,
    timeOfDay: { nowMs: () => nowMs },
  });
  const toNs = BigInt(endsMs) * 1_000_000n;
  await ingester.select({ tenant: "t", matchers: [], fromNs: 0n, toNs }, { signal });
  expect(calls).toBe(asked);
});
