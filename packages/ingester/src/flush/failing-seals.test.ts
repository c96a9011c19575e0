import { describe, expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { makeBatch, until } from "@skald/testkit";
import {
  everything,
  readRows,
  type Setup,
  type SetupOptions,
  sealHere,
  setUp,
} from "../testing/ingester.js";
import type { Seal } from "./sealer.js";

const base = 20_400n * 86_400_000_000_000n;

/** A disk that is full for as long as it is told to be, and an ingester that seals on it. */
async function fullDisk(options: SetupOptions = {}) {
  const state = { isFull: true };
  const seal: Seal = (job) => {
    if (state.isFull) return Promise.reject(new Error("ENOSPC: no space left on device"));
    return sealHere(job);
  };
  const setup = await setUp({ seal, ...options });
  await setup.ingester.start();
  return { ...setup, state };
}

function push({ ingester }: Setup, tenant: string) {
  const rows = [{ ns: base, line: "line" }];
  return ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

const refused = {
  code: "unavailable",
  message: expect.stringMatching(/^sealing fails, and is tried again; .*: ENOSPC: no space left/),
};

describe("while sealing fails", () => {
  it("a flush rejects at once, each time, and goes through when the disk has room again", async () => {
    const setup = await fullDisk();
    const { ingester, state } = setup;
    for (const tenant of ["a", "b", "c"]) await push(setup, tenant);
    await expect(ingester.flush()).rejects.toMatchObject(refused);
    await expect(ingester.flush({ tenant: "b" })).rejects.toMatchObject(refused);
    await ingester.flush({ tenant: "another" });
    state.isFull = false;
    await ingester.flush();
    expect(setup.store.objects.size).toBe(3);
    await ingester.stop();
  });

  it("a flush does not wait for room that may never come", async () => {
    const setup = await fullDisk({ changes: { bounds: { maxFrozenBytes: 1 } } });
    for (const tenant of ["a", "b", "c"]) await push(setup, tenant);
    await expect(setup.ingester.flush()).rejects.toMatchObject(refused);
    await expect(setup.ingester.flush()).rejects.toMatchObject(refused);
    setup.state.isFull = false;
    await setup.ingester.flush();
    expect(setup.store.objects.size).toBe(3);
    await setup.ingester.stop();
  });

  it("the end comes all the same, and the rows stay in the log", async () => {
    const setup = await fullDisk({ changes: { wal: { flush_on_shutdown: true } } });
    await push(setup, "a");
    await setup.ingester.stop();
    expect(setup.ingester.state).toBe("stopped");
    const again = await setUp({ dir: setup.dir });
    await again.ingester.start();
    expect(await readRows(again.ingester, "a")).toHaveLength(1);
    await again.ingester.stop({ flush: false });
  });

  it("the heads that fail make way for the others", async () => {
    const seal: Seal = (job) => {
      if (job.tenant === "bad") return Promise.reject(new Error("only this one"));
      return sealHere(job);
    };
    const changes = { head_target_size: 1, bounds: { sealConcurrency: 1 } };
    const setup = await setUp({ seal, changes });
    await setup.ingester.start();
    await push(setup, "bad");
    await push(setup, "good");
    await setup.ingester.flush({ tenant: "good" });
    expect(setup.store.objects.size).toBe(1);
    await setup.ingester.stop({ flush: false });
  });
});

it("the end waits only so long for a disk that hangs", async () => {
  let giveUp = (_: Error): void => undefined;
  const hung = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  const sleep: Sleep = (ms, signal) =>
    new Promise((resolve, reject) => {
      // The time for the last flush is up at once; then the thread that hung is ended.
      if (ms === 300_000) {
        setImmediate(() => {
          resolve();
          setImmediate(() => giveUp(new Error("the thread was ended")));
        });
      }
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  const setup = await setUp({
    seal: () => hung,
    sleep,
    changes: { wal: { flush_on_shutdown: true } },
  });
  await setup.ingester.start();
  await push(setup, "a");
  await setup.ingester.stop();
  expect(setup.ingester.state).toBe("stopped");
});

describe("a flush", () => {
  it("uploads what is sealed while it uploads something else", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seal: Seal = async (job) => {
      if (job.tenant === "b") await held;
      return sealHere(job);
    };
    const setup = await setUp({ seal, sleep: () => new Promise(setImmediate) });
    const { ingester, store } = setup;
    const put = store.put.bind(store);
    let sealedB: Promise<void> | undefined;
    store.put = async (ref, path) => {
      // The seal of the second tenant ends while the first one's segment is on its way.
      release();
      sealedB ??= until(async () => {
        const { sources } = await ingester.select({ ...everything, tenant: "b" });
        return sources[0]?.kind === "segment";
      });
      await sealedB;
      await put(ref, path);
    };
    await ingester.start();
    for (const tenant of ["a", "b"]) await push(setup, tenant);
    await ingester.flush();
    expect(store.objects.size).toBe(2);
    await ingester.stop();
  });
});
