// Decompresses blocks of 256 KiB in every way there is, and prints one table of CPU times and page faults a block.
//
//   node packages/storage/bench/zstd.mjs [blocks, 256]
//
// Last figures (2 shared cores, Node 24.21, 50 KB stored a block, median ms): node:zlib with its defaults 0.34, with an
// output of one chunk 0.20; the private handle into fresh memory 0.22, into reused memory 0.13; WebAssembly 0.37.
// docs/decisions/004-zstd-handle.md says what follows from that.
import zlib from "node:zlib";
import { loadWasmZstd, zstd } from "../dist/zstd.js";
import { openZstdDecoder } from "../dist/zstd-handle.js";

const blockBytes = 256 * 1024;
const paddingBytes = 64;
const rounds = 9;
const frames = Array.from({ length: Number(process.argv[2] ?? 256) }, (_, seed) =>
  zstd.compress(linesOf(seed), 1),
);
const decoder = openZstdDecoder();
const wasm = await loadWasmZstd();
const memory = new Uint8Array(blockBytes + paddingBytes);
const oneChunk = { chunkSize: blockBytes + paddingBytes };
const ways = {
  "node:zlib, defaults": (frame) => zlib.zstdDecompressSync(frame),
  "node:zlib, one chunk": (frame) => zlib.zstdDecompressSync(frame, oneChunk),
  "handle, fresh memory": (frame) =>
    decoder.decode(frame, new Uint8Array(memory.length).subarray(0, blockBytes)),
  "handle, reused memory": (frame) => decoder.decode(frame, memory.subarray(0, blockBytes)),
  WebAssembly: (frame) => wasm.decompress(frame, blockBytes),
};
const runs = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
// Ways take turns, because the machine may be shared.
for (let round = 0; round < rounds; round++) {
  for (const [name, decompress] of Object.entries(ways)) runs[name].push(measure(decompress));
}
const stored = frames.reduce((sum, frame) => sum + frame.length, 0) / frames.length;
console.log(`${frames.length} blocks of ${blockBytes} bytes, ${Math.round(stored)} stored`);
console.table(
  Object.fromEntries(
    Object.entries(runs).map(([name, list]) => {
      list.sort((a, b) => a.ms - b.ms);
      const { ms, faults } = list[rounds >> 1];
      return [name, { "median ms": round(ms), "min ms": round(list[0].ms), faults: round(faults) }];
    }),
  ),
);

function measure(decompress) {
  const { minorPageFault } = process.resourceUsage();
  const start = process.cpuUsage();
  for (const frame of frames) decompress(frame);
  const { user, system } = process.cpuUsage(start);
  const faults = process.resourceUsage().minorPageFault - minorPageFault;
  return { ms: (user + system) / 1000 / frames.length, faults: faults / frames.length };
}

/** JSON and logfmt lines with random ids. */
function linesOf(seed) {
  let state = seed + 1;
  const random = (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const hex = (digits) =>
    Array.from({ length: digits / 4 }, () => random(65536).toString(16).padStart(4, "0")).join("");
  let text = "";
  while (text.length < blockBytes) {
    const path = `/api/v1/items/${random(50_000)}`;
    text += `level=info msg="request completed" path=${path} duration=${random(9000)}us request_id=${hex(16)}`;
    text += JSON.stringify({ level: "info", path, trace_id: hex(32), user: { id: random(9999) } });
  }
  return Buffer.from(text.slice(0, blockBytes));
}

function round(value) {
  return Math.round(value * 1000) / 1000;
}
