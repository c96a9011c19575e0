import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { makeBatch, seededRandom, testSeed } from "@skald/testkit";
import { copyFiles, newDir, readRows, type Setup, setUp } from "./testing/ingester.js";

const base = 20_400n * 86_400_000_000_000n;
const pushes = 12;

/** An ingester that was killed after some pushes: its files, and the length of the log after each push. */
async function killed(): Promise<{ setup: Setup; log: Buffer; ends: number[] }> {
  const setup = await setUp();
  await setup.ingester.start();
  const path = join(setup.dir, "wal", "00000001.wal");
  const ends: number[] = [];
  for (let i = 0; i < pushes; i++) {
    const streams = [0, 1].map((stream) => ({
      labels: { app: `a${(i + stream) % 5}` },
      rows: [{ ns: base + BigInt(i), line: `push ${i} of ${stream}`, metadata: { i: String(i) } }],
    }));
    await setup.ingester.push({ tenant: `t${i % 2}`, batch: makeBatch(streams) });
    ends.push((await readFile(path)).length);
  }
  return { setup, log: await readFile(path), ends };
}

/** Pushes that an ingester knows after a start with this log file. */
async function pushesAfter(setup: Setup, log: Uint8Array): Promise<Set<number>> {
  const dir = await newDir();
  await copyFiles(setup, dir);
  await writeFile(join(dir, "wal", "00000001.wal"), log);
  const { ingester } = await setUp({ dir });
  await ingester.start();
  const rows = [...(await readRows(ingester, "t0")), ...(await readRows(ingester, "t1"))];
  await ingester.stop();
  const numbers = rows.map((row) => Number(/push (\d+)/.exec(row)?.[1]));
  expect(rows).toHaveLength(2 * new Set(numbers).size);
  return new Set(numbers);
}

const firstPushes = (count: number) => new Set(Array.from({ length: count }, (_, i) => i));

describe("a crash", () => {
  it("loses no push that was in the log, wherever the log ends", async () => {
    const { setup, log, ends } = await killed();
    const lengths = ends.flatMap((end) => [end - 1, end, end + 5]);
    const random = seededRandom(testSeed());
    for (let i = 0; i < 30; i++) lengths.push(random(log.length));
    for (const length of lengths) {
      const whole = ends.filter((end) => end <= length).length;
      expect(await pushesAfter(setup, log.subarray(0, length))).toEqual(firstPushes(whole));
    }
    await setup.ingester.stop();
  });

  it("loses one push to a damaged byte of the log, wherever that is", async () => {
    const { setup, log, ends } = await killed();
    const random = seededRandom(testSeed());
    const places = [0, 8, 12, ...ends.flatMap((end) => [end - 1, end, end + 40])];
    for (let i = 0; i < 30; i++) places.push(random(log.length));
    for (const at of places.filter((place) => place < log.length)) {
      const broken = Buffer.from(log);
      broken[at]! ^= 0x10;
      const found = await pushesAfter(setup, broken);
      const hit = ends.findIndex((end) => at < end);
      // The version of the file, and the names of streams that no later push has used, stand for more.
      if (at >= 8 && at < 12) continue;
      const lost = [...firstPushes(pushes)].filter((push) => !found.has(push));
      expect(lost.filter((push) => push < hit)).toEqual([]);
      expect(lost.length).toBeLessThan(4);
      expect(lost.filter((push) => push > hit + 2)).toEqual([]);
    }
    await setup.ingester.stop();
  });

  it("can come again and again", async () => {
    let { setup } = await killed();
    for (let round = 0; round < 4; round++) {
      const dir = await newDir();
      await copyFiles(setup, dir);
      await setup.ingester.stop();
      setup = await setUp({ dir });
      await setup.ingester.start();
      const rows = [{ ns: base + BigInt(100 + round), line: `push ${pushes + round}` }];
      const batch = makeBatch([{ labels: { app: "a0" }, rows }]);
      await setup.ingester.push({ tenant: "t0", batch });
      expect(await readRows(setup.ingester, "t0")).toHaveLength(pushes + round + 1);
      expect(await readRows(setup.ingester, "t1")).toHaveLength(pushes);
    }
    await setup.ingester.stop();
  });
});
