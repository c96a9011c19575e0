import type { ScanOptions } from "@skald/contracts";

/** Raw bytes for each stored byte of a segment, roughly. */
const compression = 5;

/** How a look at a source is paid for: nobody waits for it. */
export function lookOptions(tenant: string, sizeBytes: number, signal: AbortSignal): ScanOptions {
  return {
    signal,
    background: true,
    share: { tenant, actors: [], cost: sizeBytes * compression },
  };
}
