/** Jest runs what tsc compiled: the tests are the code that ships. */
export default {
  testEnvironment: "node",
  roots: ["<rootDir>/packages"],
  testMatch: ["**/dist/**/*.test.js"],
  transform: {},
  testTimeout: 60_000,
  maxWorkers: 2,
};
