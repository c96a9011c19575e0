import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const handlersOfCircus = Symbol.for("EVENT_HANDLERS");
let runs = 0;

// The names that tests import from `@jest/globals`. Each test file binds them again, also for helpers that are loaded already.
export let afterAll;
export let afterEach;
export let beforeAll;
export let beforeEach;
export let describe;
export let expect;
export let it;
export let jest;
export let test;

/** The mocks of modules, by the URL under which the test file imports the module. */
const mocks = new Map();

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "@jest/globals") return { url: import.meta.url, shortCircuit: true };
    const found = next(specifier, context);
    const [own] = context.parentURL?.match(/\?own=\d+$/) ?? [];
    const isOurs = found.url.startsWith("file:") && !found.url.includes("/node_modules/");
    if (own === undefined || !isOurs || found.url === import.meta.url) return found;
    return { ...found, url: `${found.url}${own}` };
  },
  load(url, context, next) {
    if (!mocks.has(url)) return next(url, context);
    const names = Object.keys(mocked(url)).join(", ");
    const at = JSON.stringify(url);
    const source = `import { mocked } from "@jest/globals"; export const { ${names} } = mocked(${at});`;
    return { format: "module", shortCircuit: true, source };
  },
});

/** The mock of the module at `url`. */
export function mocked(url) {
  return mocks.get(url)();
}

/**
 * Loads modules for Jest with Node's own `import`, so that a process loads each module only once for all of its test files.
 * Jest's own runtime loads the hundreds of modules of each test file again, into a `vm` context. The price is that test files
 * share the state of modules. Only a test file that mocks modules gets its own copy of all modules.
 */
export default class NodeRuntime {
  #perFile;

  constructor(config) {
    this.#perFile = new Set([...config.setupFiles, ...config.setupFilesAfterEnv]);
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  /** Loads a test file, or runs a setup file once more. */
  async unstable_importModule(path) {
    try {
      await this.#load(path);
    } catch (error) {
      // The message names the importing file; the stack has only frames of these hooks.
      if (error?.code === "ERR_MODULE_NOT_FOUND") error.stack = `Error: ${error.message}`;
      throw error;
    }
  }

  #load(path) {
    const { href } = pathToFileURL(path);
    const run = ++runs;
    if (this.#perFile.has(path)) return import(`${href}?run=${run}`);
    if (!readFileSync(path, "utf8").includes("jest.unstable_mockModule(")) return import(href);
    const own = `?own=${run}`;
    const { resolve } = createRequire(path);
    const unstable_mockModule = (specifier, make) =>
      mocks.set(`${pathToFileURL(resolve(specifier)).href}${own}`, make);
    jest = { unstable_mockModule };
    return import(`${href}${own}`);
  }

  requireModule(path) {
    return require(path);
  }

  /** Loads jest-circus again, because it keeps the tests of a file in its module. */
  requireInternalModule(path) {
    delete require.cache[path];
    delete globalThis[handlersOfCircus];
    return require(path);
  }

  setGlobalsForRuntime(globals) {
    ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } = globals);
  }

  collectV8Coverage() {
    throw new Error("coverage is not known here: run with NODE_V8_COVERAGE=<folder>");
  }

  stopCollectingV8Coverage() {}
  enterTestCode() {}
  leaveTestCode() {}
  teardown() {}

  getSourceMaps() {
    return new Map();
  }

  getAllCoverageInfoCopy() {}
}
