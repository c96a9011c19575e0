import { expect, it } from "@jest/globals";
import { Progress } from "./progress.js";

function show(isTTY: boolean): string[] {
  const written: string[] = [];
  const out = { isTTY, write: (text: string | Uint8Array) => void written.push(String(text)) };
  let nowMs = 0;
  const progress = new Progress(out, { bytes: 4096, parts: 2 }, { elapsedMs: () => nowMs });
  for (let i = 0; i < 8; i++) {
    nowMs += 4000;
    progress.add(256);
  }
  progress.addPart(0);
  nowMs += 10_000;
  progress.addPart(2048);
  progress.finish();
  return written;
}

it("writes a line every ten seconds", () => {
  expect(show(false)).toEqual([
    "18 %, 0 of 2 files, 768 B of 4.0 KiB, 52 s left\n",
    "37 %, 0 of 2 files, 1.5 KiB of 4.0 KiB, 40 s left\n",
    "100 %, 2 of 2 files, 4.0 KiB of 4.0 KiB\n",
    "100 %, 2 of 2 files, 4.0 KiB of 4.0 KiB\n",
  ]);
});

it("draws a bar on a terminal, and takes it away", () => {
  const lines = show(true);
  expect(lines[7]).toBe(
    "\r\x1b[K[###############...............] 50 %, 0 of 2 files, 2.0 KiB of 4.0 KiB, 32 s left",
  );
  expect(lines.at(-1)).toBe("\r\x1b[K");
});

it("tells bytes only where nobody knows how much there is", () => {
  const written: string[] = [];
  const out = { write: (text: string | Uint8Array) => void written.push(String(text)) };
  let nowMs = 0;
  const progress = new Progress(out, { bytes: undefined }, { elapsedMs: () => nowMs });
  nowMs = 11_000;
  progress.add(2048);
  expect(written).toEqual(["2.0 KiB\n"]);
});
