import { type LoadedConfig, loadConfig } from "../load-config.js";

/** Loads a file of a text, with flags. */
export function load(yaml: string, ...argv: string[]): LoadedConfig {
  const options = { readFile: () => yaml };
  return loadConfig(["-config.file=c.yaml", "-config.expand-env=true", ...argv], {}, options);
}

/** The loaded configuration; throws what was printed instead. */
export function run(loaded: LoadedConfig): Exclude<LoadedConfig, { exit: unknown }> {
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return loaded;
}

/** What was printed instead of a start. */
export function text(loaded: LoadedConfig): string {
  return "exit" in loaded ? loaded.exit.text : "started";
}

export const schema =
  "schema_config: {configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}]}";
/** A file that starts. */
export const minimal = `${schema}\ncommon: {path_prefix: /d}`;
