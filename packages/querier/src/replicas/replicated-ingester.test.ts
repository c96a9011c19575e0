import { expect, it } from "@jest/globals";
import type { HeldRows, Selection } from "@skald/contracts";
import { ReplicatedIngester } from "./replicated-ingester.js";

const { signal } = new AbortController();

it("tells what was stored last by any of those that dropped it", async () => {
  const ages: Record<string, number | undefined> = { a: 500, b: undefined, c: 200 };
  const ingester = new ReplicatedIngester({
    replicasOf: () => ({
      instances: Object.keys(ages).map((id) => ({ id, zone: "" })),
      maxMissing: 0,
      byZone: false,
    }),
    queryWithinMs: 0,
    connect: ({ id }) => {
      const storedAgoMs = ages[id];
      const select = async (): Promise<Selection> =>
        storedAgoMs === undefined ? { sources: [] } : { sources: [], storedAgoMs };
      return { select } as unknown as HeldRows;
    },
  });
  const selection = await ingester.select(
    { tenant: "t", matchers: [], fromNs: 0n, toNs: 1n },
    { signal },
  );
  expect(selection.storedAgoMs).toBe(200);
});
