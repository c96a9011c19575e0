import type { Logger } from "@skald/runtime";
import { installTracing } from "@skald/runtime/tracing";
import type { Config } from "../config/root.js";
import { readTracingEnvironment } from "./environment.js";

/** Variables by which others turn spans on. */
const destinations = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

export interface TracingContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly log: Logger;
}

/**
 * Turns spans on where the configuration says so, and loads what sends them only then. What it gives ends them, and sends
 * those that are left for two seconds at most.
 */
export async function startTracing(
  { tracing, target }: Pick<Config, "tracing" | "target">,
  { env, version, log }: TracingContext,
): Promise<() => Promise<void>> {
  const off = async () => undefined;
  if (!tracing.enabled) {
    const asked = destinations.find((name) => (env[name] ?? "") !== "");
    if (asked !== undefined) log.info(`${asked} is set, and tracing.enabled is not: no spans`);
    return off;
  }
  const settings = readTracingEnvironment(env, `skald-${target.join(",")}`);
  for (const warning of settings.warnings) log.warn(warning);
  if (settings.isOff) return off;
  const { openOtlpSink } = await import("./otlp-sink.js");
  const sink = openOtlpSink(settings, { version, log });
  installTracing(sink);
  return async () => {
    installTracing(undefined);
    await sink.stop();
  };
}
