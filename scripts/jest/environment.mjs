import { mkdtempSync, rmSync } from "node:fs";
import module from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const handled = ["uncaughtException", "unhandledRejection"];

// Jest gives a process half a second to exit. On a busy machine an orderly exit may take longer, because Node then frees a heap
// of hundreds of megabytes.
process.once("beforeExit", () => process.exit());

/** Runs test files in the process itself, and restores after each file what its tests may have changed in the process. */
export default class ProcessEnvironment {
  global = globalThis;
  #console = globalThis.console;
  #env = { ...process.env };
  #exit = process.exit;
  #exitCode = process.exitCode;
  #folder = process.cwd();
  /** The parent of the temporary folders of a test file. Helpers are loaded once, so they cannot remove their folders themselves. */
  #temporary = "";
  #listeners = new Map(handled.map((name) => [name, process.listeners(name)]));

  setup() {
    // The defaults of Node. With the hundred frames and the source maps of Jest, tests that expect errors are slow.
    Error.stackTraceLimit = 10;
    Error.prepareStackTrace = undefined;
    this.#temporary = mkdtempSync(join(tmpdir(), "skald-test-"));
    process.env.TMPDIR = this.#temporary;
  }

  teardown() {
    // Otherwise the compile cache is written at exit, for which Jest gives the process half a second. On a busy machine the process
    // is killed meanwhile, and compiles everything again the next time.
    module.flushCompileCache?.();
    globalThis.console = this.#console;
    process.exit = this.#exit;
    process.exitCode = this.#exitCode;
    if (process.cwd() !== this.#folder) process.chdir(this.#folder);
    for (const name of Object.keys(process.env)) {
      if (!(name in this.#env)) delete process.env[name];
    }
    Object.assign(process.env, this.#env);
    rmSync(this.#temporary, { recursive: true, force: true, maxRetries: 5 });
    // Jest leaves its own listeners behind when a test file cannot be loaded.
    for (const [name, listeners] of this.#listeners) {
      process.removeAllListeners(name);
      for (const listener of listeners) process.on(name, listener);
    }
  }

  /** Jest requires this method; there is no `vm` context. */
  getVmContext() {
    return null;
  }
}
