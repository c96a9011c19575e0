import { describe, expect, it } from "@jest/globals";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import { type Setup, setUp } from "./testing/ingester.js";

const MiB = 1024 * 1024;
const base = 20_400n * 86_400_000_000_000n;

/** A disk that has as much room as it is told to have, and takes small files or not. */
function toldDisk(totalBytes: number) {
  const state = { freeBytes: totalBytes, code: "", looks: 0 };
  const disk: WalDisk = {
    ...nodeWalDisk,
    space: async () => {
      state.looks++;
      return { totalBytes, freeBytes: state.freeBytes };
    },
    write: (path, bytes) => {
      if (state.code === "") return nodeWalDisk.write(path, bytes);
      return Promise.reject(Object.assign(new Error(`${state.code}: no`), { code: state.code }));
    },
  };
  return { disk, state };
}

let times = 0n;

function push({ ingester }: Setup, bytes = 1) {
  const rows = [{ ns: base + times++, line: "x".repeat(bytes) }];
  return ingester.push({ tenant: "t", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

const refused = {
  status: 503,
  retryAfterSeconds: 5,
  message: expect.stringMatching(/is full: .* are free, pushes are refused below/),
};

describe("free space", () => {
  it.each([
    ["128 MiB of a large disk", 100_000 * MiB, 128 * MiB],
    ["a twentieth of a small one", 100 * MiB, 5 * MiB],
  ])("is kept for what must be sealed: %s", async (_, totalBytes, floorBytes) => {
    const { disk, state } = toldDisk(totalBytes);
    state.freeBytes = floorBytes - 1;
    const setup = await setUp({ disk });
    await setup.ingester.start();
    await expect(push(setup)).rejects.toMatchObject(refused);
    expect(setup.ingester.unready).toBeUndefined();
    state.freeBytes = floorBytes + MiB;
    await setup.ingester.checkDisk();
    await push(setup);
    await setup.ingester.stop();
  });

  it("is counted between two looks, and looked at again when it seems to be gone", async () => {
    const { disk, state } = toldDisk(100_000 * MiB);
    state.freeBytes = 130 * MiB;
    const setup = await setUp({ disk });
    await setup.ingester.start();
    await push(setup, MiB);
    expect(state.looks).toBe(1);
    state.freeBytes = 127 * MiB;
    await push(setup, 2 * MiB);
    expect(state.looks).toBe(2);
    await setup.ingester.checkDisk();
    await expect(push(setup)).rejects.toMatchObject(refused);
    await setup.ingester.stop();
  });
});

describe("a directory that cannot be written", () => {
  it("is why the ingester is not ready, until it can be", async () => {
    const { disk, state } = toldDisk(100_000 * MiB);
    const setup = await setUp({ disk });
    const { ingester } = setup;
    await ingester.start();
    await push(setup);
    state.code = "EROFS";
    await ingester.checkDisk();
    expect(ingester.unready).toBe("a directory cannot be written: EROFS: no");
    await expect(push(setup)).rejects.toMatchObject({ status: 503, retryAfterSeconds: 5 });
    state.code = "";
    await ingester.checkDisk();
    expect(ingester.unready).toBeUndefined();
    await push(setup);
    state.code = "ENOSPC";
    await ingester.checkDisk();
    expect(ingester.unready).toBeUndefined();
    await expect(push(setup)).rejects.toMatchObject(refused);
    state.code = "";
    await ingester.stop();
  });
});
