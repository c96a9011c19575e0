import type { SlotRange, SlotsMissing } from "@skald/storage";

/** What a job answers that misses slots: errors lose their class on the way between threads. */
export interface MissingSlots {
  readonly missingSlots: readonly SlotRange[];
}

export function missingSlots({ ranges }: SlotsMissing): MissingSlots {
  return { missingSlots: ranges };
}

export function isMissing(value: unknown): value is MissingSlots {
  return typeof value === "object" && value !== null && "missingSlots" in value;
}
