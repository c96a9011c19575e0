import type { Ring } from "@skald/ring";
import type { Metrics } from "@skald/runtime";

const states = ["PENDING", "JOINING", "ACTIVE", "LEAVING"] as const;
/** Of members whose heartbeats are overdue, whatever they said of themselves last. */
const unhealthy = "Unhealthy";

/** Counts the members of a ring by their state, each time that it is read. */
export function countMembers(metrics: Metrics, ring: Ring, name = ring.name): void {
  const members = metrics.gauge("ring_members", "Members of a ring by their state.", [
    "name",
    "state",
  ]);
  ring.onRead(() => {
    const counts = new Map<string, number>([...states, unhealthy].map((state) => [state, 0]));
    for (const { isHealthy, state } of ring.view.instances) {
      const counted = isHealthy ? state : unhealthy;
      counts.set(counted, (counts.get(counted) ?? 0) + 1);
    }
    for (const [state, count] of counts) members.set({ name, state }, count);
  });
}
