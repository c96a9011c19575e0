import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import { everything, readRows, selectOnce, setUp, until } from "../testing/ingester.js";

const day = 20_400n * 86_400_000_000_000n;

/** Only the pause before a sync ever ends. */
const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (ms === 100) setImmediate(resolve);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

it("seals what a failed sync leaves in doubt, and goes on in a new file", async () => {
  const state = { fails: false, syncs: 0 };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      const file = await nodeWalDisk.create(path);
      const datasync = async () => {
        if (state.fails) {
          state.fails = false;
          throw Object.assign(new Error("failed"), { code: "EIO" });
        }
        await file.datasync();
        state.syncs++;
      };
      return { ...file, datasync };
    },
  };
  const { dir, ingester, metrics } = await setUp({ disk, sleep });
  await ingester.start();
  const push = (ns: bigint, tenant: string) => {
    const rows = [{ ns: day + ns, line: `line ${ns}` }];
    return ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };
  const kinds = async (tenant: string) =>
    (await selectOnce(ingester, { ...everything, tenant })).sources.map(({ kind }) => kind);
  await push(1n, "a");
  await until(() => state.syncs === 1);
  state.fails = true;
  await push(2n, "b");
  await until(async () => (await kinds("a"))[0] === "segment");
  await until(async () => (await kinds("b"))[0] === "segment");
  await push(3n, "a");
  expect(await kinds("a")).toEqual(["segment", "head"]);
  expect(await readRows(ingester, "a")).toHaveLength(2);
  expect((await metrics.read()).text).toContain("loki_ingester_wal_write_failures_total 1");
  await ingester.sweep();
  const files = await readdir(join(dir, "wal"));
  expect(files.filter((name) => name.endsWith(".wal"))).toEqual(["00000002.wal"]);
  await ingester.stop();
});
