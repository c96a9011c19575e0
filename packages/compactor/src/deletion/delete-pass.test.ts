import { expect, it } from "@jest/globals";
import type { Ingester, Scanner, SelectRequest } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { silentLogger } from "@skald/runtime/log";
import { asked, makeRequests, signal, testClock } from "../testing/requests.js";
import { DeletePass } from "./delete-pass.js";
import { statusOf } from "./delete-request.js";

const options = { signal };

/** A pass over one old request of which neither store nor ingester has rows. */
async function makePass(more: Partial<ConstructorParameters<typeof DeletePass>[0]>) {
  const clock = testClock();
  const { deletes } = makeRequests(undefined, clock);
  await deletes.refresh(options);
  await deletes.create("t", asked("{a=`b`} |= `c`", 1000, 2000, 3000), options);
  clock.ms += 10 * 3_600_000;
  const pass = new DeletePass({
    ...{ deletes, maxRequests: 10, log: silentLogger() },
    catalog: { list: async () => [] },
    scanner: {} as Scanner<SegmentRef, "matches">,
    ingester: { select: async () => ({ sources: [] }) } as unknown as Ingester,
    ...more,
  });
  return async () => {
    await pass.run(options);
    return deletes.list("t").map(statusOf);
  };
}

it("a request is processed once this process dropped its copies of the rows", async () => {
  let isBroken = true;
  const asked: string[] = [];
  const run = await makePass({
    dropCopies: async ({ request }) => {
      asked.push(request.tenant);
      if (isBroken) throw new Error("the disk is broken");
    },
  });
  expect(await run()).toEqual(["received"]);
  isBroken = false;
  expect(await run()).toEqual(["processed"]);
  expect(asked).toEqual(["t", "t"]);
});

it("a request is processed once other processes had the time to drop theirs", async () => {
  const clock = { ms: 0, elapsedMs: () => clock.ms };
  const run = await makePass({ settleMs: 1000, clock });
  for (const ms of [0, 1, 999]) {
    clock.ms = ms;
    expect(await run()).toEqual(["received"]);
  }
  clock.ms = 1000;
  expect(await run()).toEqual(["processed"]);
});

it("a request is open while an ingester has its rows in a file that only older queries use", async () => {
  const leaving = {
    ...{ kind: "segment", id: "s", tenant: "t", minNs: 1_000_000_000n, maxNs: 3_000_000_000n },
    ...{ location: { kind: "file", path: "s" }, sizeBytes: 1 },
  };
  let sources = [leaving];
  const run = await makePass({
    ingester: {
      select: async (request: SelectRequest) => ({
        sources: request.withLeaving === true ? sources : [],
      }),
      run: async () => ({ mask: { rows: [Uint32Array.of(0)] } }),
    } as unknown as Ingester,
  });
  expect(await run()).toEqual(["received"]);
  sources = [];
  expect(await run()).toEqual(["processed"]);
});
