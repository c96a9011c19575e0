import { buildInfo, helpersYield, type Logger, messageWithCauses } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { startTracing } from "@skald/runtime/trace-export";
import type { LoadedConfig } from "../config/load-config.js";
import type { Config } from "../config/root.js";
import { buildProcess, type RunningProcess } from "./process.js";

/** The exit code after a failure. */
const failed = 1;

/** Runs the process until a signal comes, its parent is gone, or a service fails; then ends it. */
export async function run(loaded: Exclude<LoadedConfig, { exit: unknown }>): Promise<void> {
  const { config, warnings, notice } = loaded;
  if (notice !== undefined) process.stderr.write(notice);
  const build = buildInfo();
  const log = openLog(config);
  /** Undefined until there is something to stop. */
  let running: RunningProcess | undefined;
  let stopping: Promise<void> | undefined;
  let stopTracing: (() => Promise<void>) | undefined;
  const stop = (reason: string, code: number): void => {
    if (stopping !== undefined) return;
    log.info("stopping", { reason });
    stopping = (running?.stop() ?? Promise.resolve()).then(async () => {
      await stopTracing?.();
      log.info("stopped");
      process.exit(code);
    });
  };
  // From here on a signal ends the process in order, also during the start.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => stop(signal, 0));
  // A parent such as `npm start` has a channel to the process, which ends with the parent.
  process.on("disconnect", () => stop("the parent is gone", 0));
  process.on("unhandledRejection", (error) => log.error("unhandled rejection", { error }));
  process.on("uncaughtException", (error) => {
    log.error("uncaught error", { error });
    process.exit(failed);
  });
  for (const warning of warnings) log.warn(warning);
  helpersYield();
  const { productVersion: version } = build;
  log.info("starting skald", { version, target: config.target, node: process.versions.node });
  try {
    const serviceName = `skald-${config.target.join(",")}`;
    stopTracing = await startTracing(config.tracing.enabled, {
      env: process.env,
      serviceName,
      version,
      log,
    });
    running = buildProcess({ config, log, build, endProcess: (reason) => stop(reason, 0) });
    await running.start();
    log.info("ready");
    const { name, error } = await running.firstFailure();
    log.error("a service failed", { service: name, error });
    stop(`service ${name} failed`, failed);
  } catch (error) {
    // A stop during the start is not a failure.
    if (stopping !== undefined) return;
    log.error(`could not start: ${messageWithCauses(error)}`, { error });
    process.exit(failed);
  }
}

/** The log of the process, on stderr. */
export function openLog({ server }: Config): Logger {
  return createLogger({ level: server.log_level, format: server.log_format, target: "stderr" });
}
