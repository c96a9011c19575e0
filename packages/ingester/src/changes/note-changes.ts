import type { HeadBlock } from "@skald/storage";
import type { TenantAppend } from "../tenant/tenant.js";
import { minuteNs } from "./change-table.js";

/** Takes note of the rows that a push has put into heads, in the turn in which they can be seen first. */
export function noteChanges({ tenant, heads }: TenantAppend): void {
  const minutes: number[] = [];
  for (const { head, before, after } of heads.values()) {
    const firstMinute = Number(head.baseNs / BigInt(minuteNs));
    const first = Math.max(0, before.blocks - 1);
    for (let i = first; i < after.blocks; i++) {
      const block = head.blocks[i] as HeadBlock;
      const from = i === before.blocks - 1 ? before.rows : 0;
      const to = i === after.blocks - 1 ? after.rows : block.rowCount;
      addMinutes(minutes, block.columns.timestamps.subarray(from, to), firstMinute);
    }
  }
  tenant.changes.note(minutes);
}

/** Adds the minutes of some times in ns since the start of a day, each stretch of one minute once. */
function addMinutes(minutes: number[], times: Float64Array, firstMinute: number): void {
  let low = 0;
  let high = 0;
  for (let i = 0; i < times.length; i++) {
    const time = times[i]!;
    if (time >= low && time < high) continue;
    const minute = Math.floor(time / minuteNs);
    low = minute * minuteNs;
    high = low + minuteNs;
    minutes.push(firstMinute + minute);
  }
}
