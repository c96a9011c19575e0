import { silentLogger } from "@skald/runtime/log";
import { Lifecycler, type LifecyclerOptions } from "../lifecycler.js";
import { Ring, type RingOptions } from "../ring.js";
import type { RingStore } from "../ring-store.js";

/** A clock that only moves when it is told to; `skewMs` is how far its wall clock is off. */
export class FakeClock {
  ms = 0;

  nowMs(skewMs = 0): number {
    return 1_700_000_000_000 + this.ms + skewMs;
  }

  elapsedMs(): number {
    return this.ms;
  }
}

/** A process with a member in a ring, whose heartbeats and looks at the ring come when a test says so. */
export interface FakeProcess {
  readonly ring: Ring;
  readonly member: Lifecycler;
}

/** Waits until it is interrupted. */
const never = (_: number, signal?: AbortSignal) =>
  new Promise<void>((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Makes one on the store given: heartbeats time out after a minute, the store is read each 5 s. */
export function fakeProcess(
  store: RingStore,
  id: string,
  options: Partial<LifecyclerOptions & RingOptions> & { time: FakeClock; skewMs?: number },
): FakeProcess {
  const { time, skewMs = 0, ...changes } = options;
  const clock = { nowMs: () => time.nowMs(skewMs) };
  const log = silentLogger();
  const ring = new Ring({
    ...{ store, name: "ring", replicas: 3, heartbeatTimeoutMs: 60_000, pollMs: 5000 },
    ...{ log, clock, steadyClock: time, sleep: never },
    ...changes,
  });
  const member = new Lifecycler({
    ...{ store, ring, id, address: `${id}:9095`, tokens: 128, heartbeatMs: 0 },
    ...{ log, clock, sleep: async () => undefined },
    ...changes,
  });
  return { ring, member };
}

/** Time goes by for all: each writes heartbeats and reads the ring every 5 s. A failing store is no failure of the test. */
export async function live(
  time: FakeClock,
  processes: readonly FakeProcess[],
  forMs: number,
): Promise<void> {
  for (const end = time.ms + forMs; time.ms < end; ) {
    time.ms += 5000;
    for (const { member } of processes) await member.beat().catch(() => undefined);
    for (const { ring } of processes) await ring.refresh().catch(() => undefined);
  }
}
