import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";

/** What a program says of its version, as "2.42.0"; "installed" if it does not say, undefined where it is not installed. */
export function versionOf(program: string): string | undefined {
  const { error, stdout, stderr } = spawnSync(program, ["--version"], { encoding: "utf8" });
  if (error !== undefined) return undefined;
  return /\d+(?:\.\d+)+/.exec(`${stdout}${stderr}`)?.[0] ?? "installed";
}

/**
 * Has `npm test` say at its end which program the tests used; without a name, that a test was left out because the program
 * is not installed.
 */
export function noteProgram(program: string, name?: string): void {
  const { SKALD_TEST_PROGRAMS: file } = process.env;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ program, name })}\n`);
}
