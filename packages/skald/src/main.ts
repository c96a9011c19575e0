import module from "node:module";
import { fileURLToPath } from "node:url";
import v8 from "node:v8";

// Most garbage of a server that ingests is buffers, which V8 counts as heap: by default it marks the small heap of each
// thread after 15 to 30 MB of them, and its helper threads took a fifth of all processor time. With this flag a heap may grow
// to 2.2 times its live size first; a limit of the heap still holds.
v8.setFlagsFromString("--heap-growing-percent=120");

// The cache of compiled code saves a sixth of the start time, so nothing else is imported before this line. Node 20 has no
// such cache; worker threads would gain little from it, and hold it in memory.
module.enableCompileCache?.(fileURLToPath(new URL(".compile-cache", import.meta.url)));
const argv = process.argv.slice(2);
const { isCommandLine } = await import("@skald/cli");
if (isCommandLine(argv)) {
  const { runTool } = await import("@skald/cli");
  const loadHost = async () => (await import("./process/command-host.js")).commandHost;
  process.exitCode = await runTool(argv, loadHost);
} else {
  await serve();
}

async function serve(): Promise<void> {
  const { loadConfig } = await import("./config/load-config.js");
  const loaded = loadConfig(process.argv.slice(2));
  if ("exit" in loaded) {
    const { code, text } = loaded.exit;
    // A pipe may take the text in parts: exiting before the last one is written would lose it.
    (code === 0 ? process.stdout : process.stderr).write(text, () => process.exit(code));
  } else {
    // The rest is loaded only now, so that `-version` and mistakes in a file are answered at once.
    const { run } = await import("./process/run.js");
    await run(loaded);
  }
}
