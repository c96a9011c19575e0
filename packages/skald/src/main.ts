import { buildInfo, messageWithCauses } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { loadConfig } from "./config/load-config.js";
import { buildProcess, type RunningProcess } from "./modules.js";

/** Exit code of a process that ended because a part of it failed. */
const failed = 1;

const loaded = loadConfig(process.argv.slice(2));
if ("exit" in loaded) {
  const { code, text } = loaded.exit;
  (code === 0 ? process.stdout : process.stderr).write(text);
  process.exit(code);
}
const { config, warnings, notice } = loaded;
if (notice !== undefined) process.stderr.write(notice);
const build = buildInfo();
const log = createLogger({
  level: config.server.log_level,
  format: config.server.log_format,
  target: "stderr",
});
/** Set as soon as there is something to stop. */
let running: RunningProcess | undefined;
let stopping: Promise<void> | undefined;

// From here on a signal is an orderly end, also in the middle of the start.
process.on("SIGTERM", () => stop("SIGTERM", 0));
process.on("SIGINT", () => stop("SIGINT", 0));
// The channel of a parent such as `npm start`: when it is gone, so are we.
process.on("disconnect", () => stop("the parent is gone", 0));
process.on("unhandledRejection", (error) => log.error("unhandled rejection", { error }));
process.on("uncaughtException", (error) => {
  log.error("uncaught error", { error });
  process.exit(failed);
});

for (const warning of warnings) log.warn(warning);
log.info("starting skald", {
  version: build.productVersion,
  target: config.target,
  node: process.versions.node,
});
await start();

async function start(): Promise<void> {
  try {
    running = buildProcess({ config, log, build });
    const port = await running.start();
    log.info("listening", { port });
    const { name, error } = await running.firstFailure();
    log.error("a service failed", { service: name, error });
    stop(`service ${name} failed`, failed);
  } catch (error) {
    // Asked to stop while starting: that is no failure.
    if (stopping !== undefined) return;
    log.error(`could not start: ${messageWithCauses(error)}`, { error });
    process.exit(failed);
  }
}

function stop(reason: string, code: number): void {
  if (stopping !== undefined) return;
  log.info("stopping", { reason });
  stopping = (running?.stop() ?? Promise.resolve()).then(() => {
    log.info("stopped");
    process.exit(code);
  });
}
