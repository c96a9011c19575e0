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
/** What changes the disk: before any other call the power goes as before the next of these. */
const changes = [...writes.filter((name) => name !== "open"), "sync", "rm", "rmdir", "unlink"];

interface Kind {
  readonly fault: Fault;
  /** Calls that it may happen to; any where absent. */
  readonly calls?: readonly string[];
  /** Calls that it happens to, one after the other. */
  readonly inARow?: number;
  readonly ends?: readonly End[];
}

const kinds: Readonly<Record<string, Kind>> = {
  "an I/O error": { fault: { code: "EIO" } },
  "five I/O errors in a row": { fault: { code: "EIO" }, inARow: 5 },
  "a full disk for ten calls": { fault: { code: "ENOSPC" }, calls: writes, inARow: 10 },
  "too many open files": { fault: { code: "EMFILE" }, calls: ["open"] },
  "a write or read that is short": { fault: "short", calls: ["write", "read"] },
  "a failed sync": { fault: { code: "EIO" }, calls: ["sync"], ends: ["kill", "nothing"] },
  "a power cut that leaves nothing that was not synced": {
    fault: "power cut",
    calls: changes,
    ends: ["nothing"],
  },
  "a power cut that leaves names and a part of the bytes": {
    fault: "power cut",
    calls: changes,
    ends: ["names and a part"],
  },
};

describe("a process over a disk that fails", () => {
  it("does more than a hundred calls when nothing fails", async () => {
    const noFault = { faultOf: () => undefined, where: "" };
    expect(await livedThrough(noFault, "kill")).toBeGreaterThan(100);
  });

  it.each(Object.keys(kinds))(
    "keeps every acknowledged line exactly once after %s, wherever that is",
    async (name) => {
      const kind = kinds[name] as Kind;
      const { inARow = 1, ends } = kind;
      const found: string[] = [];
      for (let n = 1, isOver = false; !isOver; n += Math.ceil(inARow / 2)) {
        for (const end of ends ?? [n % 2 === 0 ? "kill" : "nothing"]) {
          const failing = failFrom(n, kind);
          await livedThrough(failing, end).catch((error: Error) =>
            found.push(`${n}, ${failing.where}, ${end}: ${error.message}`),
          );
          isOver = failing.where === "";
        }
      }
      expect(found).toEqual([]);
    },
  );
});

interface Failing {
  readonly faultOf: (call: DiskCall) => Fault;
  /** The call that failed first; empty as long as none did. */
  readonly where: string;
}

/** Fails from the n-th call on that a fault may happen to. */
function failFrom(n: number, { fault, calls, inARow = 1 }: Kind): Failing {
  let at = 0;
  const failing = {
    where: "",
    faultOf: ({ name, path }: DiskCall): Fault => {
      if (calls !== undefined && !calls.includes(name)) return undefined;
      at++;
      if (at < n || at >= n + inARow) return undefined;
      failing.where ||= `${name} ${path}`;
      return fault;
    },
  };
  return failing;
}

type End = "kill" | Leftover;

/** Lives a life with faults, ends it, and looks what the next process finds; fails with what is wrong. */
function livedThrough(failing: Failing, end: End): Promise<number> {
  return endsSoon(liveAndLook(failing, end));
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

async function liveAndLook({ faultOf }: Failing, end: End): Promise<number> {
  disk = new MemoryDisk(newRoot());
  disk.faultOf = faultOf;
  const before = new FaultyLife(disk);
  await disk.unlessOff(live(before));
  const { calls } = disk;
  const root = newRoot();
  disk = end === "kill" ? disk.moved(root) : disk.afterPowerCut(root, end);
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
