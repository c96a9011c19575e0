import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { DirectoryLock } from "./directory-lock.js";

const made: string[] = [];
function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "skald-lock-"));
  made.push(directory);
  return directory;
}
afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true });
});

it("keeps everybody else out until it is released", () => {
  const dir = join(makeDirectory(), "made", "for it");
  const lock = DirectoryLock.take(dir);
  expect(lock.isExclusive).toBe(true);
  const refusal = new RegExp(
    `^directory .+ is in use by process ${process.pid} of \\S+ since \\d{4}-\\S+Z; stop it`,
  );
  expect(() => DirectoryLock.take(dir)).toThrow(refusal);
  expect(() => DirectoryLock.take(dir)).toThrow(expect.objectContaining({ code: "unavailable" }));
  DirectoryLock.take(makeDirectory()).release();
  lock.release();
  lock.release();
  DirectoryLock.take(dir).release();
});

it("minds neither what a dead process left, nor an owner who has not written his name", () => {
  const dir = makeDirectory();
  writeFileSync(join(dir, "lock"), "");
  writeFileSync(join(dir, "lock.owner"), '{"pid":1,"host":"h","since":"2020-01-01T00:00:00Z"}');
  const lock = DirectoryLock.take(dir);
  rmSync(join(dir, "lock.owner"));
  expect(() => DirectoryLock.take(dir)).toThrow("is in use by another process; stop it");
  lock.release();
  expect(existsSync(join(dir, "lock-journal"))).toBe(false);
});
