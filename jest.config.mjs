import { randomInt } from "node:crypto";

// All random tests take one seed: 1, or SEED=<n>, or with SEED=random a new one. The workers inherit it.
const { SEED: asked = "1" } = process.env;
process.env.SEED = asked === "random" ? String(randomInt(2 ** 31)) : asked;
console.error(`random tests: SEED=${process.env.SEED}`);

/** Jest runs what tsc compiled: the tests are the code that ships. */
export default {
  testEnvironment: "<rootDir>/scripts/jest-environment.mjs",
  testEnvironmentOptions: { globalsCleanup: "off" },
  roots: ["<rootDir>/packages"],
  testMatch: ["**/dist/**/*.test.js"],
  setupFilesAfterEnv: ["<rootDir>/packages/testkit/dist/jest-setup.js"],
  transform: {},
  // Far beyond what any test takes on a busy machine: only one that hangs meets it.
  testTimeout: 300_000,
  maxWorkers: 2,
};
