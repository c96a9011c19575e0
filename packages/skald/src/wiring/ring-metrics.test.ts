import { describe, expect, it } from "@jest/globals";
import { Lifecycler, MemoryRingStore, Ring } from "@skald/ring";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { countMembers } from "./rings.js";

describe("countMembers", () => {
  it("tells the members of a ring by their state, as it was read last", async () => {
    const metrics = new Metrics();
    const log = silentLogger();
    const store = new MemoryRingStore();
    let nowMs = 0;
    const steadyClock = { elapsedMs: () => nowMs };
    const options = { store, name: "ring", replicas: 1, heartbeatTimeoutMs: 10, pollMs: 10, log };
    const ring = new Ring({ ...options, steadyClock });
    countMembers(metrics, ring, "ingester");
    const read = async () => {
      await ring.refresh();
      const { text } = await metrics.read();
      return [...text.matchAll(/^loki_ring_members\{name="ingester",state="(\w+)"\} [1-9]$/gm)].map(
        ([, state]) => state,
      );
    };
    expect(await read()).toEqual([]);
    const member = new Lifecycler({
      ...{
        store,
        ring,
        id: "a",
        address: "a:1",
        zone: "",
        tokens: 1,
        heartbeatMs: 60_000,
        settleMs: 0,
      },
      log,
    });
    await member.start();
    expect(await read()).toEqual(["PENDING"]);
    await member.join(new AbortController().signal);
    expect(await read()).toEqual(["ACTIVE"]);
    // Seen in between, so that the time without a heartbeat counts.
    for (; nowMs < 40; nowMs += 5) await ring.refresh();
    expect(await read()).toEqual(["Unhealthy"]);
    await member.stop({ unregister: true, deleteTokens: false });
  });
});
