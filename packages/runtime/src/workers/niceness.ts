import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";

/**
 * How nice the threads are that the main thread does not wait for: where threads wait for a core, it gets three times as much of it as
 * one of them. It answers everybody. Linux has a niceness for each thread, others one for the process.
 */
export const jobNiceness = 5;

/** Leaves a busy core to the main thread from now on; a thread of jobs calls it. */
export function yieldToMainThread(): void {
  makeNice(() => [0]);
}

/**
 * Makes the helper threads of V8 leave a busy core to the main thread, too. All threads share them, and what they clear up is mostly the
 * garbage of jobs. Before Node 24 they have no name, and stay as they are.
 */
export function helpersYield(): void {
  const tasks = "/proc/self/task";
  const isHelper = (task: string) =>
    readFileSync(`${tasks}/${task}/comm`, "latin1") === "V8Worker\n";
  makeNice(() => readdirSync(tasks).filter(isHelper).map(Number));
}

/** Makes threads nice: 0 is the caller. */
function makeNice(threads: () => readonly number[]): void {
  if (process.platform !== "linux") return;
  try {
    for (const thread of threads()) setPriority(thread, jobNiceness);
  } catch {
    // A sandbox that forbids it costs nothing but patience.
  }
}
