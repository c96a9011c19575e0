import { randomInt } from "node:crypto";
import module from "node:module";

// All random tests take one seed: 1, or SEED=<n>, or with SEED=random a new one. The workers inherit it.
const { SEED: asked = "1" } = process.env;
process.env.SEED = asked === "random" ? String(randomInt(2 ** 31)) : asked;
console.error(`random tests: SEED=${process.env.SEED}`);

const natively = {
  runtime: "<rootDir>/scripts/jest/runtime.mjs",
  testEnvironment: "<rootDir>/scripts/jest/environment.mjs",
};

/** Jest runs what tsc compiled: the tests are the code that ships. A Node without hooks takes Jest's own runtime, which is slow. */
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
  // Far beyond what any test takes on a busy machine: only one that hangs meets it.
  testTimeout: 300_000,
  maxWorkers: 2,
  // Of V8's heap, all modules included; such a process has about a gigabyte. A new one goes on.
  workerIdleMemoryLimit: "400MB",
};
