import { expect, it } from "@jest/globals";
import { type Findings, findingsBytes } from "@skald/logql";
import { KeptFindings } from "./kept-findings.js";

const none = new Uint32Array(0);
const findings = (bytes: number): Findings => ({
  ...{ blocks: none, wordStart: none, passed: none, passedStart: none },
  ...{ seen: new Uint32Array(bytes / 4), series: new Uint16Array(0) },
  ...{ values: new Float64Array(0), labels: [{ names: ["a"], values: ["b"] }] },
});

it("keeps what was asked for last, within its bytes", () => {
  const size = findingsBytes(findings(4000));
  const kept = new KeptFindings(size * 3 + 3);
  for (const key of ["k1", "k2", "k3"]) kept.add("p", key, findings(4000));
  expect(kept.of("p", "k1")).toHaveLength(1);
  kept.add("p", "k4", findings(4000));
  expect(["k1", "k2", "k3", "k4"].map((key) => kept.of("p", key)?.length)).toEqual([
    ...[1, undefined, 1, 1],
  ]);
  expect(kept.bytes).toBeLessThanOrEqual(size * 3 + 3);
  kept.add("p", "k5", findings(size * 4));
  expect(kept.of("p", "k5")).toBeUndefined();
});

it("forgets those of a segment together", () => {
  const kept = new KeptFindings();
  for (const place of ["p", "p2"])
    for (const key of ["k1", "k2"]) kept.add(place, key, findings(40));
  kept.forget("p");
  expect([kept.of("p", "k1"), kept.of("p", "k2")]).toEqual([undefined, undefined]);
  expect([kept.of("p2", "k1")?.length, kept.of("p2", "k2")?.length]).toEqual([1, 1]);
});

it("drops the oldest of many findings of one key", () => {
  const kept = new KeptFindings();
  const all = Array.from({ length: 80 }, (_, i) => findings(4 * i));
  for (const one of all) kept.add("p", "k", one);
  expect(kept.of("p", "k")).toEqual(all.slice(-64));
});
