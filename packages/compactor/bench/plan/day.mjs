// A tenant's day as the compactor sees it: segments arrive, its own plan says what is merged, and every call of the store is counted.
import { planBounds, planMerges } from "../../dist/compaction/plan.js";

const dayNs = 86_400_000_000_000n;
const runsADay = 144;
const MiB = 1024 * 1024;
/** What ranges and parts are fetched and put in. */
const pieceBytes = 8 * MiB;
/** Segments that ingesters seal are this large, or this old. */
const headBytes = 32e6;
const headsADay = 12;
/** Bytes at rest by byte of lines, as they are sealed and once they are merged: the kit's gigabyte. */
export const atRest = { fresh: 0.2266, merged: 0.2016 };

/** What a day of so many bytes of lines makes; `copies` is the replication factor, and a merge drops all but one. */
export function simulateDay({ lineBytes, ingesters, copies, mergesAtOnce }) {
  const each = (lineBytes * copies) / ingesters;
  const sealed = Math.max(headsADay, Math.ceil(each / headBytes)) * ingesters;
  const size = (lineBytes * copies) / sealed;
  const day = { puts: 0, gets: 0, merges: 0, publishes: 0, mergedBytes: 0, levels: [], most: 0 };
  let segments = [];
  let next = 0;
  let arrived = 0;
  const merge = (isSettled) => {
    for (;;) {
      const groups = planMerges(segments, isSettled);
      if (groups.length === 0) return;
      // Merges that end together are in one index.
      day.publishes += Math.ceil(groups.length / mergesAtOnce);
      const gone = new Set();
      const made = [];
      for (const group of groups) {
        made.push(mergeGroup(day, group, copies, `m${next++}`));
        for (const one of group) gone.add(one);
      }
      segments = [...segments.filter((one) => !gone.has(one)), ...made];
    }
  };
  for (let run = 1; run <= runsADay; run++) {
    const until = Math.floor((sealed * run) / runsADay);
    if (until > arrived) day.publishes++;
    for (; arrived < until; arrived++) {
      const minNs = (dayNs * BigInt(arrived)) / BigInt(sealed);
      const maxNs = minNs + dayNs / BigInt(Math.max(headsADay, Math.ceil(sealed / ingesters)));
      segments.push({ id: `s${arrived}`, minNs, maxNs, lineBytes: size, level: 0 });
      day.puts += pieces(size * atRest.fresh);
      // The end of it, for its index.
      day.gets++;
    }
    merge(false);
    day.most = Math.max(day.most, segments.length);
  }
  const open = segments.length;
  merge(true);
  day.puts += day.publishes;
  return { ...day, sealed, open, merged: segments.length, bounds: planBounds };
}

function mergeGroup(day, group, copies, id) {
  const level = 1 + Math.max(...group.map((one) => one.level));
  const read = group.reduce((sum, one) => sum + one.lineBytes, 0);
  const kept = group.reduce((sum, one) => sum + one.lineBytes / (one.level === 0 ? copies : 1), 0);
  for (const one of group)
    day.gets += Math.ceil(
      (one.lineBytes * (one.level ? atRest.merged : atRest.fresh)) / pieceBytes,
    );
  day.puts += pieces(kept * atRest.merged);
  // Its size is asked for.
  day.gets++;
  day.merges++;
  day.mergedBytes += read;
  day.levels[level] = (day.levels[level] ?? 0) + 1;
  const minNs = group.reduce((least, one) => (one.minNs < least ? one.minNs : least), dayNs);
  const maxNs = group.reduce((most, one) => (one.maxNs > most ? one.maxNs : most), 0n);
  return { id, minNs, maxNs, lineBytes: kept, level };
}

/** Calls that put an object: one, or a beginning, its parts and an end. */
function pieces(bytes) {
  return bytes <= pieceBytes ? 1 : Math.ceil(bytes / pieceBytes) + 2;
}
