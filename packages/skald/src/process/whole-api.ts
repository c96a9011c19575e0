import { buildInfo } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { loadConfig } from "../config/load-config.js";
import type { Endpoint } from "../http/api.js";
import { buildProcess } from "./process.js";

/** Also what the whole process has no part of. */
export const everyTarget = "-target=all,index-gateway,pattern-ingester";

/** All that a process can serve, for documents and tests: nothing is started for it. */
export function wholeApi(): readonly Endpoint[] {
  const loaded = loadConfig(
    ["-server.profiles-enabled", "-pattern-ingester.enabled", everyTarget],
    {},
  );
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const log = createLogger({ target: { write: () => undefined } });
  return buildProcess({ config: loaded.config, log, build: buildInfo() }).api;
}
