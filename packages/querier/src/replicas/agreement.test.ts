import { expect, it } from "@jest/globals";
import type { HeadRef, MinuteDigests } from "@skald/contracts";
import type { ReplicaGroup } from "../find/order-sources.js";
import { ReplicaAgreement } from "./agreement.js";

const minuteNs = 60_000_000_000n;

/** An hour of one stream that three ingesters have, with a digest for every ten minutes. */
function hour(matcher: string): ReplicaGroup {
  const range = { minNs: 0n, maxNs: 60n * minuteNs - 1n };
  const sources = ["a", "b", "c"].map((instance) => ({
    side: "ingester" as const,
    ref: {
      ...({ kind: "head", id: "h", tenant: "t", view: "v", sizeBytes: 1, instance } as HeadRef),
      ...range,
    },
  }));
  const matchers = [{ name: "app", op: "=", value: matcher }] as const;
  return { sources, matchers, fromNs: 0n, toNs: 60n * minuteNs };
}

/** By ingester, the minutes that it is not scanned for; "all" where it is not scanned. */
async function leftOut(matcher: string, rowsPerDigest: number) {
  const digests: MinuteDigests = {
    streams: Float64Array.of(1),
    counts: Uint32Array.of(6),
    minutes: Uint32Array.of(0, 10, 20, 30, 40, 50),
    rows: new Uint32Array(6).fill(rowsPerDigest),
    sums: new Uint32Array(12),
  };
  const group = hour(matcher);
  const agreement = new ReplicaAgreement(group, {
    digests: async () => digests,
    rowHashes: () => Promise.reject(new Error("no digests differ")),
  });
  return Promise.all(
    group.sources.map(async (source) => {
      const left = await agreement.leaveOut(source);
      if (left?.isAll === true) return "all";
      const { all = [] } = left?.skipped ?? {};
      return [...all].reduce((sum, minute, i) => sum + (i % 2 === 0 ? -minute : minute), 0);
    }),
  );
}

it("scans one ingester for few rows, the same one for the same question", async () => {
  const found = await Promise.all(["x", "y", "z", "x"].map((one) => leftOut(one, 80_000)));
  for (const one of found) expect([...one].sort()).toEqual([0, "all", "all"]);
  expect(found[3]).toEqual(found[0]);
  expect(new Set(found.map((one) => one.indexOf(0))).size).toBeGreaterThan(1);
});

it("shares many rows out by time", async () => {
  expect(await leftOut("x", 90_000)).toEqual([40, 40, 40]);
});
