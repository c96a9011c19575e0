import { describe, expect, it, jest } from "@jest/globals";
import { type DiskCall, type Fault, type Leftover, MemoryDisk, memoryFiles } from "@skald/testkit";

let disk = new MemoryDisk("");
jest.unstable_mockModule("@skald/storage/files", () => memoryFiles(() => disk));
// Locks are those of the operating system, on real folders.
jest.unstable_mockModule("../../storage/dist/directory-lock.js", () => ({
  DirectoryLock: { take: () => ({ isExclusive: true, release: () => undefined }) },
}));
const { FaultyLife, assertExpected } = await import("./testing/faulty-life.js");

type Life = InstanceType<typeof FaultyLife>;
type Script = (life: Life) => Promise<void>;

// Errors are thrown by the thousands here, and nobody looks where.
Error.stackTraceLimit = 1;

/** Every call with every end; without it calls that are alike, ends, and kinds of faults take turns. */
const isThorough = process.env.RUNS !== undefined;

let roots = 0;
const newRoot = () => `/${++roots}`;

const writes = ["write", "open", "mkdir", "link", "rename", "truncate"];
/** What changes the disk: before any other call the power goes as before the next of these. */
const changes = [...writes.filter((name) => name !== "open"), "sync", "rm", "rmdir", "unlink"];

/** How a process ends: by a kill, by a power cut, or by a kill and a power cut at the end of what the next one does. */
type End = "kill" | Leftover | "kill, start, nothing" | "kill, drop, nothing";

interface Kind {
  readonly fault: Fault;
  /** Calls that it may happen to; any where absent. */
  readonly calls?: readonly string[];
  /** Calls that it happens to, one after the other. */
  readonly inARow?: number;
  /** Each call comes with each of them; where absent kills and power cuts take turns. */
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
  "a kill that a power cut follows": {
    fault: "power cut",
    calls: changes,
    ends: ["kill, start, nothing", "kill, drop, nothing"],
  },
};

/** A process that fails, on what those before it left. */
const processes: readonly (readonly [
  string,
  { readonly past: Script; readonly script: Script },
])[] = [
  ["at its first start", { past: async () => undefined, script: firstProcess }],
  ["after a kill", { past: killedProcess, script: laterProcess }],
];

describe.each(processes)("a process over a disk that fails, %s", (_, { past, script }) => {
  it("does more than a hundred calls when nothing fails", async () => {
    const course = { past: await pastOf(past), script };
    expect((await callsOf(course, { fault: undefined })).length).toBeGreaterThan(100);
  });

  it.each(Object.keys(kinds))(
    "keeps every acknowledged line exactly once after %s, wherever that is",
    async (name) => {
      const kind = kinds[name] as Kind;
      const course = { past: await pastOf(past), script };
      const found: string[] = [];
      const beginnings = beginningsOf(kind, await callsOf(course, kind));
      for (const [i, n] of turnOf(name, beginnings).entries()) {
        for (const end of endsOf(kind, i)) {
          const failing = failFrom(n, kind);
          await livedThrough({ ...course, faultOf: failing.faultOf, end }).catch((error: Error) =>
            found.push(`${n}, ${failing.where}, ${end}: ${error.message}`),
          );
          if (failing.where === "") found.push(`${n}: no such call`);
        }
      }
      expect(found).toEqual([]);
    },
  );
});

describe("a power cut", () => {
  const noPast = async () => undefined;
  const noFault = () => undefined;

  it("does not bring the log of rows back whose segments are gone", async () => {
    const script: Script = async (life) => {
      await life.start();
      for (let i = 0; i < 3; i++) await life.push("a");
      await life.flush();
      // Begins a new file of the log.
      await life.push("a");
      // Drops the first segment, and syncs the directory that it was in for the second.
      await life.sweep();
      await life.check({ mustAnswer: true });
    };
    await livedThrough({ past: await pastOf(noPast), script, faultOf: noFault, end: "nothing" });
  });

  it("takes nothing with it that the store had after a put that failed", async () => {
    const script: Script = async (life) => {
      await life.start();
      await life.push("a");
      await life.flush();
      await life.flush();
      await life.sweep();
      await life.check({ mustAnswer: true });
    };
    // Neither the first way into the store gets further, nor the second.
    const isOfStore = ({ name, path }: DiskCall) => name === "sync" && path.endsWith("/tenant=a");
    let failures = 0;
    const faultOf = (call: DiskCall): Fault =>
      isOfStore(call) && failures++ < 2 ? { code: "EIO" } : undefined;
    await livedThrough({ past: await pastOf(noPast), script, faultOf, end: "nothing" });
    expect(failures).toBeGreaterThan(2);
  });

  it("takes nothing with it that a process found which another had placed when it was killed", async () => {
    const script: Script = async (life) => {
      await life.start();
      await life.push("a");
      await life.sweep();
    };
    const isOfPlace = ({ name, path }: DiskCall) => name === "sync" && path.endsWith("/segments/a");
    const faultOf = (call: DiskCall): Fault => (isOfPlace(call) ? "power cut" : undefined);
    await livedThrough({
      past: await pastOf(noPast),
      script,
      faultOf,
      end: "kill, start, nothing",
    });
  });
});

function endsOf({ ends }: Kind, i: number): readonly End[] {
  const all: readonly End[] = ["kill", "nothing"];
  return ends ?? (isThorough ? all : [all[i % all.length] as End]);
}

/** The calls that a process does when none fails, as far as a kind of fault may happen to them. */
async function callsOf(course: Pick<Course, "past" | "script">, kind: Kind): Promise<string[]> {
  const calls: string[] = [];
  const faultOf = ({ name, path }: DiskCall): Fault => {
    if (kind.calls?.includes(name) ?? true) calls.push(`${name} ${path}`);
    return undefined;
  };
  await livedThrough({ ...course, faultOf, end: "kill" });
  return calls;
}

/** Which calls fail first, from 1; of many writes or reads in a row of one file the first and the last. */
function beginningsOf({ inARow = 1 }: Kind, calls: readonly string[]): number[] {
  const step = Math.ceil(inARow / 2);
  return [...calls.keys()]
    .filter((i) => i % step === 0)
    .filter((i) => isThorough || calls[i] !== calls[i - step] || calls[i] !== calls[i + step])
    .map((i) => i + 1);
}

/** With nine kinds each call still meets several of them. */
function turnOf(name: string, beginnings: readonly number[]): readonly number[] {
  if (isThorough) return beginnings;
  const turn = Object.keys(kinds).indexOf(name) % turns;
  return beginnings.filter((_, i) => i % turns === turn);
}

const turns = 3;

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

interface Past {
  readonly disk: MemoryDisk;
  readonly life: Life;
}

/** What a process leaves that is killed at the end of its script. */
async function pastOf(script: Script): Promise<Past> {
  disk = new MemoryDisk(newRoot());
  const life = new FaultyLife(disk);
  await script(life);
  const left = disk.moved(newRoot());
  life.abandon();
  return { disk: left, life };
}

interface Course {
  readonly past: Past;
  readonly script: Script;
  readonly faultOf: (call: DiskCall) => Fault;
  readonly end: End;
}

/** Runs a process with faults, ends it, and looks what the next ones find; fails with what is wrong. */
function livedThrough(course: Course): Promise<void> {
  return endsSoon(liveAndLook(course));
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

async function liveAndLook({ past, script, faultOf, end }: Course): Promise<void> {
  disk = past.disk.copied(newRoot());
  disk.faultOf = faultOf;
  const faulty = past.life.copied(disk);
  await disk.unlessOff(script(faulty));
  const life = await nextAfter(faulty, end);
  await look(life);
  await life.stop();
}

/** Ends a process, and the disk goes on under another root. */
async function nextAfter(life: Life, end: End): Promise<Life> {
  switch (end) {
    case "kill":
      return onDisk(disk.moved(newRoot()), life);
    case "kill, start, nothing": {
      const between = await nextAfter(life, "kill");
      await between.start();
      await between.stop();
      return nextAfter(between, "nothing");
    }
    case "kill, drop, nothing": {
      const between = await nextAfter(life, "kill");
      await between.start();
      await between.sweep();
      await between.sweep();
      return nextAfter(between, "nothing");
    }
    default:
      return onDisk(disk.afterPowerCut(newRoot(), end), life);
  }
}

function onDisk(left: MemoryDisk, before: Life): Life {
  disk = left;
  before.abandon();
  return new FaultyLife(disk, before);
}

/** Starts without faults, and does what moves rows. */
async function look(life: Life): Promise<void> {
  await life.start();
  await life.check({ mustAnswer: true });
  await life.push("a");
  await life.flush();
  await life.sweep();
  await life.check({ mustAnswer: true });
}

/** Pushes, seals, uploads and asks; whatever fails is tried once more or left. */
async function firstProcess(life: Life): Promise<void> {
  if (!(await started(life))) return;
  await life.push("a");
  await life.push("b");
  await life.push("a");
  await life.check({ mustAnswer: false });
  await life.flush();
  await life.push("a");
  await life.push("b");
  await life.sweep();
  await life.check({ mustAnswer: false });
  await life.stop();
}

/** Leaves segments that the store has and one that it does not have, and rows in the log. */
async function killedProcess(life: Life): Promise<void> {
  await life.start();
  await life.push("a");
  await life.push("b");
  await life.flush();
  await life.push("a");
  await life.sweep();
  await life.check({ mustAnswer: true });
  await life.push("b");
  await life.push("a");
}

async function laterProcess(life: Life): Promise<void> {
  if (!(await started(life))) return;
  await life.check({ mustAnswer: false });
  await life.push("b");
  await life.sweep();
  await life.flush();
  await life.push("a");
  await life.check({ mustAnswer: false });
  await life.stop();
}

async function started(life: Life): Promise<boolean> {
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
