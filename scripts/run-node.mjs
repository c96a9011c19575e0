import { spawn } from "node:child_process";
import { constants } from "node:os";

/** Large memory that is freed goes back to the system at once: see docs/decisions/038-memory-given-back.md. */
const malloc = { MALLOC_MMAP_THRESHOLD_: "131072" };
/** MiB for new objects, twice: V8 would take 64 after a burst, keep them, and stop for longer to collect them. */
const heap = ["--max-semi-space-size=16"];

/**
 * Runs a program as a child in the foreground. This process passes its signals to the child and exits as the child does. The
 * IPC channel shows the child when this process is killed, so that it does not run on alone.
 */
export function runNode(node, args) {
  const child = spawn(node, [...heap, ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...malloc, ...process.env },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  return child;
}
