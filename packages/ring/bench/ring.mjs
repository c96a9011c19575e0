// What a push pays for its ring: node packages/ring/bench/ring.mjs
import { performance } from "node:perf_hooks";
import { RingView } from "../dist/index.js";
import { TokenPlan } from "../dist/plan-tokens.js";

const keys = Uint32Array.from({ length: 1000 }, (_, i) => Math.imul(i + 1, 0x9e3779b1));
const rows = [];
for (const count of [3, 30, 300]) {
  const plan = new TokenPlan([], 3);
  let joinMs = 0;
  const instances = Array.from({ length: count }, (_, i) => {
    const start = performance.now();
    const tokens = plan.add({ count: 128, seed: "" });
    joinMs = performance.now() - start;
    return {
      ...{ id: `i${i}`, address: "", zone: "", state: "ACTIVE", tokens, beat: 1 },
      ...{ heartbeatMs: 0, registeredMs: 0, isHealthy: true },
    };
  });
  const options = { replicas: 3, isZoneAware: false };
  const place = leastMs(5, () => new RingView(instances, options).planWrites(keys.subarray(0, 1)));
  const view = new RingView(instances, options);
  rows.push({
    instances: count,
    "plan 1000 keys us": Math.round(leastMs(300, () => view.planWrites(keys)) * 1000),
    "owner of a key ns": Math.round(leastMs(300, () => ownAll(view)) * 1000),
    "build a view ms": Number(place.toFixed(2)),
    "plan the last join ms": Number(joinMs.toFixed(2)),
  });
}
console.table(rows);

function ownAll(view) {
  let found = 0;
  for (const key of keys) if (view.ownerOf(key) !== undefined) found++;
  return found;
}

function leastMs(times, task) {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    task();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}
