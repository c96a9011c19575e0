import { totalmem } from "node:os";

/** Bytes of memory that this process may take: that of its container, else that of the machine. */
export function memoryBytes(): number {
  const container = process.constrainedMemory?.() ?? 0;
  return container > 0 ? Math.min(container, totalmem()) : totalmem();
}
