import { threadId } from "node:worker_threads";
import { SkaldError } from "@skald/model";
import { serveJobs } from "../jobs.js";

/** The jobs of the pool's tests; `flag` is a word of shared memory that the test and the job watch. */
interface FlagJob {
  readonly flag: Int32Array;
}

const left: WeakRef<Uint8Array>[] = [];

serveJobs({
  self: () => ({ value: threadId }),
  /** Leaves a buffer, and returns how many it left that are collected. */
  litter: ({ mib }: { mib: number }) => {
    if (mib > 0) left.push(new WeakRef(new Uint8Array(mib * 1024 * 1024).fill(1)));
    return { value: left.filter((buffer) => buffer.deref() === undefined).length };
  },
  double: ({ n }: { n: number }) => ({ value: n * 2 }),
  later: async ({ n }: { n: number }) => ({ value: await Promise.resolve(n) }),
  move: ({ bytes }: { bytes: Uint8Array<ArrayBuffer> }) => ({
    value: bytes,
    transfer: [bytes.buffer, bytes.buffer],
  }),
  refuse: () => {
    throw new SkaldError("invalid_argument", "no such thing", { status: 418, detail: { at: 3 } });
  },
  refuseOddly: () => {
    throw new SkaldError("invalid_argument", "odd detail", { detail: () => undefined });
  },
  fault: () => {
    throw new TypeError("x is undefined");
  },
  caused: () => {
    throw new SkaldError("unavailable", "not now", { cause: new Error("disk", { cause: "EIO" }) });
  },
  text: () => {
    throw "just text";
  },
  uncloneable: () => ({ value: () => undefined }),
  wait: ({ flag }: FlagJob) => {
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
    Atomics.wait(flag, 1, 0);
    return { value: "done" };
  },
  untilCancelled: ({ flag }: FlagJob, { check }) => {
    Atomics.store(flag, 0, 1);
    for (;;) check();
  },
  ask: async ({ name, value }: { name: string; value: unknown }, { call }) => ({
    value: await call(name, value),
  }),
  askTwice: async (_payload: object, { call, signal }) => {
    const first = new AbortController();
    const given = call("never", 1, { signal: first.signal }).catch((error) => String(error));
    first.abort(new Error("given up"));
    return { value: [await given, await call("twice", 2, { signal })] };
  },
  untilSignal: async ({ flag }: FlagJob, { signal }) => {
    Atomics.store(flag, 0, 1);
    await new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return { value: undefined };
  },
  exit: () => process.exit(3),
  crash: () => {
    setImmediate(() => {
      throw new Error("out of the blue");
    });
    return new Promise(() => undefined);
  },
});
