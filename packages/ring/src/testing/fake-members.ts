import type { RingInstance } from "../member.js";
import { TokenPlan } from "../plan-tokens.js";

/** An ACTIVE and healthy member without tokens, changed as wanted. */
export function fakeMember(id: string, changes: Partial<RingInstance> = {}): RingInstance {
  return {
    ...{ id, address: `${id}:9095`, zone: "", state: "ACTIVE", tokens: new Uint32Array(0) },
    ...{ beat: 1, heartbeatMs: 0, registeredMs: 1, isHealthy: true },
    ...changes,
  };
}

/** Members `i0`, `i1`, ... that joined one after the other; with zones they are dealt out to those in turn. */
export function fakeMembers(
  count: number,
  options: { tokens?: number; replicas?: number; zones?: readonly string[] } = {},
): RingInstance[] {
  const { tokens = 128, replicas = 3, zones } = options;
  const plans = (zones ?? [""]).map(() => new TokenPlan([], zones === undefined ? replicas : 1));
  const given: Uint32Array[] = [];
  return Array.from({ length: count }, (_, i) => {
    const zone = zones?.[i % zones.length] ?? "";
    const plan = plans[i % plans.length] as TokenPlan;
    const chosen = plan.add({ count: tokens, seed: zone, taken: given.slice(-plans.length) });
    given.push(chosen);
    return fakeMember(`i${i}`, { zone, tokens: chosen });
  });
}
