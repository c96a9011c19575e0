import { SkaldError } from "@skald/model";
import { serveJobs } from "../jobs.js";

/** The jobs of the pool's tests; `flag` is a word of shared memory that the test and the job watch. */
interface FlagJob {
  readonly flag: Int32Array;
}

serveJobs({
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
  exit: () => process.exit(3),
  crash: () => {
    setImmediate(() => {
      throw new Error("out of the blue");
    });
    return new Promise(() => undefined);
  },
});
