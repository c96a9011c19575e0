import { fnv1a32 } from "@skald/model";

/**
 * When a group is evaluated: at fixed times, `offset + n * interval`, with an offset that its name gives, so that the groups
 * of a ruler spread over the interval and a restart changes nothing. All times are ms since the epoch.
 */
export interface Schedule {
  readonly intervalMs: number;
  readonly offsetMs: number;
}

export function scheduleOf(key: string, intervalMs: number): Schedule {
  return { intervalMs, offsetMs: fnv1a32(key) % intervalMs };
}

/** The last time of the schedule that is not after `ms`. */
export function slotBefore({ intervalMs, offsetMs }: Schedule, ms: number): number {
  return Math.floor((ms - offsetMs) / intervalMs) * intervalMs + offsetMs;
}

/** What follows an evaluation that was meant for `slotMs` and is over at `nowMs`. */
export function nextSlot(
  schedule: Schedule,
  slotMs: number,
  nowMs: number,
): { readonly slotMs: number; readonly missed: number } {
  const { intervalMs } = schedule;
  const last = slotBefore(schedule, nowMs);
  // A clock that was set back must not stop the group.
  if (last < slotMs - intervalMs) return { slotMs: last + intervalMs, missed: 0 };
  // The slot that has begun meanwhile is late but not lost.
  const missed = Math.max(0, (last - slotMs) / intervalMs - 1);
  return { slotMs: slotMs + (missed + 1) * intervalMs, missed };
}
