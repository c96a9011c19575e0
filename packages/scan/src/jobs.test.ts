import { expect, it } from "@jest/globals";
import { decodeOutcome } from "@skald/contracts";
import type { LogPlan } from "@skald/logql";
import { threadScans } from "./jobs.js";
import { openHead } from "./source/source.js";
import { contextOf, logPlan, rowsOf } from "./testing/scans.js";
import { makeHead, row } from "./testing/sources.js";

interface Transferable {
  transfer?: (this: ArrayBuffer, length: number) => ArrayBuffer;
}
const prototype = ArrayBuffer.prototype as unknown as Transferable;
const { transfer } = prototype;

(transfer === undefined ? it.skip : it)("gives lines back when they are encoded", () => {
  const lines = Array.from({ length: 6 }, (_, i) => String(i).repeat(1_000_000));
  const ref = makeHead(
    lines.map((line, i) => row("a", i, line)),
    { id: "h" },
  );
  const given: number[] = [];
  prototype.transfer = function (length) {
    given.push(this.byteLength);
    return (transfer as NonNullable<typeof transfer>).call(this, length);
  };
  const plan = logPlan("{app=`a`}");
  const context = contextOf() as never;
  try {
    const found = threadScans.scan.run(
      { plan, sources: [{ ref, sequence: 0 }] },
      (one) => openHead(one as never),
      context,
    );
    const { partial } = decodeOutcome<LogPlan>(found);
    expect(rowsOf(plan, [partial]).map(([, , line]) => line)).toEqual(lines);
  } finally {
    prototype.transfer = transfer as NonNullable<typeof transfer>;
  }
  // At last all lines, with their padding.
  expect(given.at(-1)).toBe(6_000_064);
});
