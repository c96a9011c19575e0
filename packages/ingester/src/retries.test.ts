import { describe, expect, it } from "@jest/globals";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch, until } from "@skald/testkit";
import { readRows, setUp } from "./testing/ingester.js";

const day = 20_400n * 86_400_000_000_000n;

function push(...lines: readonly (readonly [bigint, string])[]) {
  const rows = lines.map(([ns, line]) => ({ ns: day + ns, line }));
  return { tenant: "t", batch: makeBatch([{ labels: { app: "a" }, rows }]) };
}

/** A disk whose writes wait until they are told to go on, or to fail. */
function slowDisk() {
  const writes: ((error?: Error) => void)[] = [];
  const state = { isSlow: false };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      const file = await nodeWalDisk.create(path);
      return {
        ...file,
        writev: async (parts) => {
          if (state.isSlow) {
            await new Promise<void>((resolve, reject) => {
              writes.push((error) => (error === undefined ? resolve() : reject(error)));
            });
          }
          return file.writev(parts);
        },
      };
    },
  };
  return { disk, state, writes };
}

describe("a retry while the first push is still being written", () => {
  async function retried() {
    const { disk, state, writes } = slowDisk();
    const setup = await setUp({ disk });
    await setup.ingester.start();
    await setup.ingester.push(push([1n, "before"]));
    state.isSlow = true;
    const outcomes: string[] = [];
    const tell = (who: string, pushed: Promise<unknown>) =>
      pushed.then(
        () => outcomes.push(`${who} is stored`),
        (error) => outcomes.push(`${who} got ${error.status}`),
      );
    const first = tell("the first", setup.ingester.push(push([2n, "line"])));
    await until(() => writes.length === 1);
    const retry = tell("the retry", setup.ingester.push(push([2n, "line"])));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    const finish = async (error?: Error) => {
      state.isSlow = false;
      writes[0]?.(error);
      await Promise.all([first, retry]);
    };
    return { ...setup, outcomes, finish };
  }

  it("fails with it", async () => {
    const { ingester, outcomes, finish } = await retried();
    expect(outcomes).toEqual([]);
    await finish(new Error("the disk is gone"));
    expect(outcomes).toEqual(["the first got 503", "the retry got 503"]);
    expect(await readRows(ingester, "t")).toHaveLength(1);
    await ingester.push(push([2n, "line"]));
    expect(await readRows(ingester, "t")).toHaveLength(2);
    await ingester.stop();
  });

  it("is answered after it", async () => {
    const { ingester, outcomes, finish } = await retried();
    await finish();
    expect(outcomes).toEqual(["the first is stored", "the retry is stored"]);
    expect(await readRows(ingester, "t")).toHaveLength(2);
    // Duplicates of what is written wait for nothing.
    await ingester.push(push([2n, "line"]));
    await ingester.stop();
  });
});
