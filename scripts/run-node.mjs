import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs a program as a child in the foreground: its exit is ours, our signals are its. The channel tells it when
 * we are gone, so that nothing is left running behind a killed parent.
 */
export function runNode(node, args) {
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  return child;
}
