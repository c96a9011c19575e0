import module from "node:module";
import { fileURLToPath } from "node:url";

// Compiled code of an earlier start saves a fifth of the next one, so nothing else is imported before this. Worker threads
// look at the variable; Node 20 has no such cache.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL(".compile-cache", import.meta.url));
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);
const { loadConfig } = await import("./config/load-config.js");

const loaded = loadConfig(process.argv.slice(2));
if ("exit" in loaded) {
  const { code, text } = loaded.exit;
  // A pipe may take the text in parts: ending before it took the last one would lose it.
  (code === 0 ? process.stdout : process.stderr).write(text, () => process.exit(code));
} else {
  // All the rest is loaded only now, so that `-version` and a mistake in a file are answered at once.
  const { run } = await import("./run.js");
  await run(loaded);
}
