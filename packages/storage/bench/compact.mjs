// Merges segments made of generated pushes at several levels of zstd, and prints one table. Times are CPU times.
//
//   node packages/storage/bench/compact.mjs [DIR/bodies.pb] [MB of all, 250] [MB per segment, 16] [levels, 1,3,6,9]
//
// Later, 105 MB in 4 segments, levels 1 and 9: from 54 and 31 to 78 and 40 MB per CPU second.
// Last figures of the whole table (2 cores shared with much else, Node 24.21, 126 MB in 8 segments, 1,3,6,9): 53, 49, 36, 31 MB per CPU second, of which half
// is block filters at level 1; 0.2183, 0.2236, 0.2091, 0.2018 bytes at rest per raw byte; 112 MB of memory, whatever the size. Overlapping: the same.
//
// "overlapping": each stream was pushed by two agents at once, to two ingesters.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { mergeSegments, openSegmentFile, sealSegment } from "../dist/index.js";
import { blockOf, groupHeads, madeUp, makeHead, readBodies } from "./heads.mjs";

const [file, allMb = "250", segmentMb = "16", levels = "1,3,6,9"] = process.argv.slice(2);
if (file === "--merge") console.log(JSON.stringify(measure(allMb, Number(segmentMb))));
else compare();

/** Each merge has a process of its own: the heap of this one is large, and so are its collections. */
function compare() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "skald-bench-"));
  const bodies = file === undefined ? madeUp(Number(allMb)) : readBodies(file, Number(allMb));
  const heads = groupHeads(bodies.map(blockOf), Number(segmentMb) * 1e6);
  const table = {};
  for (const [name, list] of [
    ["one after the other", heads],
    ["overlapping", heads.flatMap(apart)],
  ]) {
    const some = path.join(directory, name);
    fs.mkdirSync(some);
    sealAll(list, some);
    for (const level of levels.split(","))
      table[`${name}, level ${level}`] = JSON.parse(
        execFileSync(process.execPath, ["--expose-gc", process.argv[1], "--merge", some, level]),
      );
  }
  fs.rmSync(directory, { recursive: true });
  console.table(table);
}

function measure(directory, level) {
  const names = fs.readdirSync(directory).filter((name) => name.startsWith("in-"));
  const opened = names.sort().map((name) => {
    const location = { kind: "file", path: path.join(directory, name) };
    return openSegmentFile({ id: name, tenant: "t", location });
  });
  const inputs = opened.map(({ segment }) => ({ segment }));
  const at = path.join(directory, "merged.parquet");
  const options = { tenant: "t", id: "merged", path: at, inputs, level };
  globalThis.gc();
  const before = process.memoryUsage().rss;
  const start = process.cpuUsage();
  const wall = performance.now();
  const steps = mergeSegments(options);
  let step;
  let longest = 0;
  let peak = 0;
  do {
    const from = performance.now();
    step = steps.next();
    longest = Math.max(longest, performance.now() - from);
    peak = Math.max(peak, process.memoryUsage.rss());
  } while (!step.done);
  const { user, system } = process.cpuUsage(start);
  const seconds = (performance.now() - wall) / 1000;
  for (const { close } of opened) close();
  const merged = step.value;
  return {
    inputs: names.length,
    "raw MB": Math.round(merged.bytes / 1e6),
    "MB per CPU second": Math.round(merged.bytes / (user + system)),
    "wall s": +seconds.toFixed(2),
    "longest step ms": +longest.toFixed(1),
    "more memory MB": Math.round((peak - before) / 1e6),
    "at rest/raw": +(merged.sizeBytes / merged.bytes).toFixed(4),
  };
}

function sealAll(list, directory) {
  list.forEach((head, i) => {
    const at = path.join(directory, `in-${String(i).padStart(5, "0")}.parquet`);
    sealSegment({ tenant: "t", id: `${i}`, path: at, heads: [head] });
  });
}

function apart({ lists, baseNs }) {
  return [0, 1].map((half) =>
    makeHead(
      lists.map((list) => list.filter((_, i) => i % 2 === half)),
      baseNs,
    ),
  );
}
