import { describe, expect, it } from "@jest/globals";
import type { TimeRange } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { setUp } from "../testing/ingester.js";
import { ChangeTable } from "./change-table.js";

const minute = 60_000_000_000n;
const minutes = (from: number, to: number): TimeRange => ({
  fromNs: BigInt(from) * minute,
  toNs: BigInt(to) * minute,
});

describe("ChangeTable", () => {
  it("tells the minutes of rows that were written since", () => {
    const table = new ChangeTable();
    table.note([5, 7]);
    const { token } = table;
    table.note([7, 8, 30, -2]);
    expect(table.since(token, minutes(0, 20))).toEqual([minutes(7, 9)]);
    expect(table.since(token, minutes(-100, 1e6))).toEqual([
      minutes(-2, -1),
      minutes(7, 9),
      minutes(30, 31),
    ]);
    expect(table.since(token, { fromNs: 9n * minute, toNs: 9n * minute })).toEqual([]);
    expect(table.since(token, { fromNs: 9n * minute - 1n, toNs: 10n * minute })).toHaveLength(1);
    expect(table.since(table.token, minutes(0, 20))).toEqual([]);
  });

  it.each([undefined, "", "x.1", "1"])("does not know the token %s", (token) => {
    const table = new ChangeTable();
    table.note([5]);
    expect(table.since(token, minutes(0, 20))).toEqual([minutes(0, 20)]);
    expect(new ChangeTable().since(table.token, minutes(0, 20))).toEqual([minutes(0, 20)]);
  });

  it("never says too little of rows of very many minutes", () => {
    const table = new ChangeTable();
    table.note([10]);
    const { token } = table;
    for (let i = 0; i < 5000; i++) table.note([i * 60]);
    expect(table.since(token, minutes(120, 121))).toEqual([minutes(120, 121)]);
    expect(table.since(token, { fromNs: -5n * minute, toNs: -4n * minute })).toEqual([]);
    for (let i = 0; i < 9000; i++) table.note([i * 60]);
    const late = table.token;
    expect(table.since(token, minutes(-5, -4))).toEqual([minutes(-5, -4)]);
    table.note([3]);
    expect(table.since(late, minutes(0, 20))).toEqual([minutes(3, 4)]);
  });
});

describe("an ingester", () => {
  const dayMinutes = 20_400 * 1440;
  const push = (...at: number[]) => ({
    tenant: "t",
    batch: makeBatch([
      {
        labels: { app: "a" },
        rows: at.map((m) => ({ ns: BigInt(dayMinutes + m) * minute, line: `${m}` })),
      },
    ]),
  });
  const span = minutes(dayMinutes, dayMinutes + 100);

  it("tells what was written, whatever becomes of it", async () => {
    const { dir, ingester } = await setUp();
    const ask = async (since?: string) => {
      const { spans } = await ingester.changes({
        tenant: "t",
        spans: [since === undefined ? span : { ...span, since }],
      });
      return spans[0]!;
    };
    await ingester.start();
    const { token: before } = await ask();
    expect((await ask(before)).changed).toEqual([]);
    await ingester.push(push(3, 3, 9));
    expect((await ask(before)).changed).toEqual([span]);
    const { token } = await ask();
    await ingester.push(push(4, 50));
    const changed = [
      minutes(dayMinutes + 4, dayMinutes + 5),
      minutes(dayMinutes + 50, dayMinutes + 51),
    ];
    expect((await ask(token)).changed).toEqual(changed);
    await ingester.flush();
    expect((await ask(token)).changed).toEqual(changed);
    await ingester.stop();
    const again = await setUp({ dir });
    await again.ingester.start();
    const { spans } = await again.ingester.changes({
      tenant: "t",
      spans: [{ ...span, since: token }],
    });
    expect(spans[0]!.changed).toEqual([span]);
    await again.ingester.stop();
  });
});
