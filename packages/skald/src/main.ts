import { loadConfig } from "./config/load-config.js";

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
