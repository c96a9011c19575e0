import { describe, expect, it, jest } from "@jest/globals";
import { type DiskCall, type Fault, type Leftover, MemoryDisk, memoryFiles } from "@skald/testkit";

let disk = new MemoryDisk("");
jest.unstable_mockModule("@skald/storage/files", () => memoryFiles(() => disk));
// Locks are those of the operating system, on real folders.
jest.unstable_mockModule("../../storage/dist/directory-lock.js", () => ({
  DirectoryLock: { take: () => ({ isExclusive: true, release: () => undefined }) },
}));
const { FaultyLife, assertExpected } = await import("./testing/faulty-life.js");

let roots = 0;
const newRoot = () => `/${++roots}`;

const writes = ["write", "open", "mkdir", "link", "rename", "truncate"];
const kinds: Record<
  string,
  { readonly fault: Fault; readonly calls?: readonly string[]; readonly inARow?: number }
> = {
  "an I/O error": { fault: { code: "EIO" } },
  "five I/O errors in a row": { fault: { code: "EIO" }, inARow: 5 },
  "a full disk for ten calls": { fault: { code: "ENOSPC" }, calls: writes, inARow: 10 },
  "too many open files": { fault: { code: "EMFILE" }, calls: ["open"] },
  "a write or read that is short": { fault: "short", calls: ["write", "read"] },
  "a failed sync": { fault: { code: "EIO" }, calls: ["sync"] },
};

describe("a process over a disk that fails", () => {
  it("sees what it wrote when nothing fails", async () => {
    expect(await callsOfLife()).toBeGreaterThan(100);
  });

  it.each(Object.keys(kinds))(
    "keeps every acknowledged line exactly once after %s, wherever that is",
    async (name) => {
      const { fault, calls, inARow = 1 } = kinds[name] as (typeof kinds)[string];
      const applies = (call: DiskCall) => calls === undefined || calls.includes(call.name);
      const found: string[] = [];
      for (let n = 1, met = true; met; n++) {
        met = false;
        let at = 0;
        let left = inARow;
        let where = "";
        const faultOf = (call: DiskCall): Fault => {
          if (left === 0 || !applies(call) || ++at < n) return undefined;
          if (!met) where = `${call.name} ${call.path}`;
          met = true;
          left--;
          return fault;
        };
        await livedThrough({ faultOf, end: "kill" }).catch((error: Error) =>
          found.push(`${n} (${where}): ${error.message}`),
        );
        if (name === "a failed sync")
          await livedThrough({ faultOf, end: "nothing" }).catch((error: Error) =>
            found.push(`${n} cut (${where}): ${error.message}`),
          );
      }
      expect(found).toEqual([]);
    },
  );

  it.each<Leftover>(["nothing", "names and a part"])(
    "keeps them after a power cut that leaves of what was not synced: %s",
    async (leftover) => {
      const calls = await callsOfLife();
      const found: string[] = [];
      for (let n = 1; n <= calls; n++) {
        let where = "";
        const faultOf = (call: DiskCall): Fault => {
          if (call.n !== n) return undefined;
          where = `${call.name} ${call.path}`;
          return "power cut";
        };
        await livedThrough({ faultOf, end: leftover }).catch((error: Error) =>
          found.push(`${n} (${where}): ${error.message}`),
        );
      }
      expect(found).toEqual([]);
    },
  );
});

type End = "kill" | Leftover;

/** Lives a life with faults, ends it, and looks what the next process finds; fails with what is wrong. */
function livedThrough(options: { faultOf: (call: DiskCall) => Fault; end: End }): Promise<number> {
  return endsSoon(liveAndLook(options));
}

/** Nothing here waits for anything but turns of the event loop: what takes very many of them never ends. */
async function endsSoon<T>(task: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = task.finally(() => {
    isSettled = true;
  });
  settled.catch(() => undefined);
  for (let turn = 0; turn < 5000 && !isSettled; turn++)
    await new Promise((resolve) => setImmediate(resolve));
  if (!isSettled) throw new Error("never ends");
  return settled;
}

async function liveAndLook(options: {
  faultOf: (call: DiskCall) => Fault;
  end: End;
}): Promise<number> {
  disk = new MemoryDisk(newRoot());
  disk.faultOf = options.faultOf;
  const before = new FaultyLife(disk);
  await disk.unlessOff(live(before));
  const { calls } = disk;
  const root = newRoot();
  disk = options.end === "kill" ? disk.moved(root) : disk.afterPowerCut(root, options.end);
  before.abandon();
  const life = new FaultyLife(disk, before);
  await life.start();
  await life.check({ mustAnswer: true });
  await life.push("a");
  await life.flush();
  await life.sweep();
  await life.check({ mustAnswer: true });
  await life.stop();
  return calls;
}

function callsOfLife(): Promise<number> {
  return livedThrough({ faultOf: () => undefined, end: "kill" });
}

/** Pushes, seals, uploads, asks, and starts again; whatever fails is tried once more or left. */
async function live(life: InstanceType<typeof FaultyLife>): Promise<void> {
  if (!(await started(life))) return;
  await life.push("a");
  await life.push("b");
  await life.push("a");
  await life.check({ mustAnswer: false });
  await life.flush();
  await life.push("a");
  await life.push("b");
  await life.check({ mustAnswer: false });
  await life.sweep();
  await life.check({ mustAnswer: false });
  await life.stop();
  if (!(await started(life))) return;
  await life.check({ mustAnswer: false });
  await life.push("b");
  await life.sweep();
  await life.flush();
  await life.push("a");
  await life.check({ mustAnswer: false });
  await life.stop();
}

async function started(life: InstanceType<typeof FaultyLife>): Promise<boolean> {
  for (let attempt = 1; attempt <= 8; attempt++) {
    try {
      await life.start();
      return true;
    } catch (error) {
      assertExpected(error);
      await life.stop();
    }
  }
  return false;
}
