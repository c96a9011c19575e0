import { it } from "@jest/globals";
import { noteProgram, versionOf } from "./programs.js";
import { findRealRedis } from "./redis/redis-program.js";

/** Debian has no package of them, or too old a one, so that CI cannot install them. */
const leftOutInCi = ["helm", "kubectl"];

/**
 * Declares a test, as `it` does, that needs a program: `needs("promtool")("takes the names", () => ...)`; "redis" is a real Redis.
 * Where it is not installed the test is left out and counted as skipped; it fails if the variable CI is set.
 */
export function needs(program: string): (name: string, run: () => void | Promise<void>) => void {
  const found = program === "redis" ? findRealRedis()?.name : versionOf(program);
  return (name, run) => {
    if (found === undefined && process.env.CI && !leftOutInCi.includes(program))
      return it(name, () => {
        throw new Error(`${program} is not installed: with CI set no test of it is left out`);
      });
    noteProgram(program, found);
    if (found === undefined) it.skip(name, run);
    else it(name, run);
  };
}
