import { randomInt } from "node:crypto";

// All random tests take one seed: 1, or SEED=<n>, or with SEED=random a new one. The workers inherit it.
const { SEED: asked = "1" } = process.env;
process.env.SEED = asked === "random" ? String(randomInt(2 ** 31)) : asked;
console.error(`random tests: SEED=${process.env.SEED}`);

/** Jest runs what tsc compiled: the tests are the code that ships. */
export default {
  testEnvironment: "node",
  roots: ["<rootDir>/packages"],
  testMatch: ["**/dist/**/*.test.js"],
  setupFiles: ["<rootDir>/packages/testkit/dist/jest-setup.js"],
  transform: {},
  testTimeout: 60_000,
  maxWorkers: 2,
};
