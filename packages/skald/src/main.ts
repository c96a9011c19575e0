import module from "node:module";
import { fileURLToPath } from "node:url";
import v8 from "node:v8";

// Most garbage of a server that ingests are buffers, which V8 counts as heap: by itself it marks its small heaps, of every
// thread, after each 15 to 30 MB of them, with helper threads that took a fifth of all processor time. A heap may become 2.2
// times as large as what lives in it first; a limit of the heap is kept nevertheless.
v8.setFlagsFromString("--heap-growing-percent=120");

// Compiled code of an earlier start saves a sixth of the next one, so nothing else is imported before this. Node 20 has
// no such cache; worker threads would win little by it, and hold it in memory.
module.enableCompileCache?.(fileURLToPath(new URL(".compile-cache", import.meta.url)));
const tools = ["inspect", "verify"];
if (tools.includes(process.argv[2] ?? "")) {
  const { runTool } = await import("./tools.js");
  process.exitCode = await runTool(process.argv.slice(2));
} else {
  await serve();
}

async function serve(): Promise<void> {
  const { loadConfig } = await import("./config/load-config.js");
  const loaded = loadConfig(process.argv.slice(2));
  if ("exit" in loaded) {
    const { code, text } = loaded.exit;
    // A pipe may take the text in parts: ending before it took the last one would lose it.
    (code === 0 ? process.stdout : process.stderr).write(text, () => process.exit(code));
  } else {
    // All the rest is loaded only now, so that `-version` and a mistake in a file are answered at once.
    const { run } = await import("./process/run.js");
    await run(loaded);
  }
}
