import { expect, it } from "@jest/globals";
import { Progress } from "./progress.js";

function show(isTTY: boolean): string[] {
  const written: string[] = [];
  const out = { isTTY, write: (text: string) => void written.push(text) };
  const progress = new Progress(out, { bytes: 4096, files: 2 });
  for (let i = 0; i < 8; i++) progress.add(256);
  progress.addFile(0);
  progress.addFile(2048);
  progress.finish();
  return written;
}

it("writes a line when another tenth is done", () => {
  const lines = show(false);
  expect(lines.map((line) => line.split(",")[0])).toEqual([
    ...["12 %", "25 %", "31 %", "43 %", "50 %", "100 %"],
  ]);
  expect(lines.at(-1)).toBe("100 %, 2 of 2 files, 4.0 KiB of 4.0 KiB\n");
});

it("draws a bar on a terminal, and takes it away", () => {
  const lines = show(true);
  expect(lines[7]).toBe(
    "\r\x1b[K[###############...............] 50 %, 0 of 2 files, 2.0 KiB of 4.0 KiB",
  );
  expect(lines.at(-1)).toBe("\r\x1b[K");
});
