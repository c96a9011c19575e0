// Runs before the tests of each file: properties take the seed of the run, and a failing one prints it with its
// counterexample. Only files that use fast-check pay for loading it.
import { readFileSync } from "node:fs";
import { expect } from "@jest/globals";
import { testSeed } from "./random.js";

const { testPath } = expect.getState();
if (testPath !== undefined && readFileSync(testPath, "utf8").includes('from "fast-check"')) {
  const { default: fc } = await import("fast-check");
  fc.configureGlobal({ seed: testSeed() });
}
