import { setTimeout as pause } from "node:timers/promises";
import type { SkaldError } from "@skald/model";
import { WorkerPool, type WorkerPoolOptions } from "../pool.js";
import type { JobOptions } from "../seat.js";

const pools: WorkerPool[] = [];

/** Closes what a test made. */
export async function closePools(): Promise<void> {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
}

/** A pool of one thread with the jobs of `jobs.ts`. */
export function newPool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const url = new URL("./jobs.js", import.meta.url);
  return new WorkerPool({ url, size: 1, maxQueued: 100, ...options });
}

/** One that `closePools` closes. */
export function makePool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const pool = newPool(options);
  pools.push(pool);
  return pool;
}

export const now: JobOptions = { lane: "query" };
export const background: JobOptions = { lane: "background" };

/** A job that runs until it is released. */
export function hold(pool: WorkerPool, options: JobOptions = now) {
  const flag = new Int32Array(new SharedArrayBuffer(8));
  const result = pool.run<string>("wait", { flag }, options);
  const release = () => {
    Atomics.store(flag, 1, 1);
    Atomics.notify(flag, 1);
  };
  return { result, release, started: until(() => Atomics.load(flag, 0) === 1) };
}

/** Leaves the processor to the threads that it waits for. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await pause(1);
}

/** What a job failed with. Rejects when it did not. */
export function failureOf(promise: Promise<unknown>): Promise<SkaldError> {
  return promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error: SkaldError) => error,
  );
}
