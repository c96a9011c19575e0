import { readFileSync } from "node:fs";
import { expect, it } from "@jest/globals";
import { goldenPath } from "../testing/golden.js";
import { inspectWal, type WalFault } from "./replay.js";

function inspect(bytes: Buffer) {
  const kinds: string[] = [];
  const faults: WalFault[] = [];
  const onRecord = (record: { kind: string } | "void") =>
    void kinds.push(record === "void" ? record : record.kind);
  for (const _ of inspectWal("a.wal", bytes, {
    onRecord,
    onFault: (fault) => void faults.push(fault),
  })) {
    // Only what it tells counts.
  }
  return { kinds, faults };
}

it.each([
  ["wal-v1.bin", ["streams", "push_body", "push_body", "push_body", "push_columns"]],
  ["wal-v1-repaired.bin", ["streams", "void", "push_body", "push_body", "push_columns"]],
  ["wal-v1-forward.bin", ["streams", "forward"]],
])("tells the records of %s", (name, kinds) => {
  expect(inspect(readFileSync(goldenPath(name)))).toEqual({ kinds, faults: [] });
});

it("finds every byte that is not as it was written", () => {
  const whole = readFileSync(goldenPath("wal-v1.bin"));
  const missed: number[] = [];
  for (let at = 0; at < whole.length; at++) {
    const bytes = Buffer.from(whole);
    bytes[at]! ^= 1 << (at % 8);
    if (inspect(bytes).faults.length === 0) missed.push(at);
  }
  expect(missed).toEqual([]);
});

it("tells a record that was being written from damage", () => {
  const whole = readFileSync(goldenPath("wal-v1.bin"));
  const { faults } = inspect(whole.subarray(0, whole.length - 1));
  expect(faults).toMatchObject([{ kind: "torn" }]);
  const bytes = Buffer.from(whole);
  bytes[200]! ^= 1;
  expect(inspect(bytes).faults).toMatchObject([{ kind: "corrupt" }]);
});
