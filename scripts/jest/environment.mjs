import { mkdtempSync, rmSync } from "node:fs";
import module from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const handled = ["uncaughtException", "unhandledRejection"];

// Jest gives a process half a second from its last word to its end: of that, giving back a heap of hundreds of megabytes in
// order takes the most on a busy machine.
process.once("beforeExit", () => process.exit());

/** Runs test files in the process itself, and puts back after each what a test may have changed of it. */
export default class ProcessEnvironment {
  global = globalThis;
  #console = globalThis.console;
  #env = { ...process.env };
  #exit = process.exit;
  #exitCode = process.exitCode;
  #folder = process.cwd();
  /** Where the folders of temporary files of a test file are: helpers are loaded once, and cannot remove theirs after each. */
  #temporary = "";
  #listeners = new Map(handled.map((name) => [name, process.listeners(name)]));

  setup() {
    // As Node has it: the hundred frames of Jest cost most of the time where errors are expected, and so do its source maps.
    Error.stackTraceLimit = 10;
    Error.prepareStackTrace = undefined;
    this.#temporary = mkdtempSync(join(tmpdir(), "skald-test-"));
    process.env.TMPDIR = this.#temporary;
  }

  teardown() {
    // Else all code that was compiled is written at the end of the process, for which Jest gives it half a second: on a busy machine
    // it is ended in the middle, says so, and compiles again the next time.
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
    // Those of Jest stay behind where a test file could not be loaded.
    for (const [name, listeners] of this.#listeners) {
      process.removeAllListeners(name);
      for (const listener of listeners) process.on(name, listener);
    }
  }

  /** There is no such context; Jest asks that it can be asked. */
  getVmContext() {
    return null;
  }
}
