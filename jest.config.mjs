import { randomInt } from "node:crypto";
import module from "node:module";

// All random tests use one seed: 1, or SEED=<n>, or a new one with SEED=random. The workers inherit it.
const { SEED: asked = "1" } = process.env;
process.env.SEED = asked === "random" ? String(randomInt(2 ** 31)) : asked;
console.error(`random tests: SEED=${process.env.SEED}`);

const natively = {
  runtime: "<rootDir>/scripts/jest/runtime.mjs",
  testEnvironment: "<rootDir>/scripts/jest/environment.mjs",
};

/** Jest runs the output of tsc, the code that ships. A Node without hooks uses Jest's own runtime, which is slow. */
export default {
  ...(module.registerHooks === undefined ? {} : natively),
  injectGlobals: false,
  roots: ["<rootDir>/packages"],
  testMatch: ["**/dist/**/*.test.js"],
  // `npm run test:docker` alone runs the test that needs Docker.
  testPathIgnorePatterns: [
    "/node_modules/",
    ...(process.env.SKALD_TEST_DOCKER === "1" ? [] : ["/packages/test/dist/docker.test.js$"]),
  ],
  setupFilesAfterEnv: ["<rootDir>/packages/testkit/dist/jest-setup.js"],
  transform: {},
  // No test takes this long even on a busy machine, so only a test that hangs reaches the limit.
  testTimeout: 300_000,
  maxWorkers: 2,
  // This is the heap of V8 with all modules; the process then has about a gigabyte, and a new one continues.
  workerIdleMemoryLimit: "400MB",
};
