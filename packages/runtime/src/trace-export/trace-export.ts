import type { Logger } from "../logger.js";
import { installTracing } from "../tracing.js";
import type { TracingSettings } from "./otlp-sink.js";

/** What spans say about the process, and where warnings go. */
export interface ExportContext {
  readonly env: Environment;
  /** The `service.name` of spans, unless the environment names another. */
  readonly serviceName: string;
  readonly version: string;
  readonly log: Logger;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Exports spans as the variables of OpenTelemetry in the environment say, if tracing is enabled; loads the exporter only then.
 * The function that it returns ends the export, and sends the remaining spans for two seconds at most.
 */
export async function startTracing(
  isEnabled: boolean,
  { env, serviceName, version, log }: ExportContext,
): Promise<() => Promise<void>> {
  const off = async () => undefined;
  if (!isEnabled) {
    const asked = destinations.find((name) => (env[name] ?? "") !== "");
    if (asked !== undefined) log.info(`${asked} is set, and tracing.enabled is not: no spans`);
    return off;
  }
  const settings = readTracingEnvironment(env, serviceName);
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

/** Variables that turn spans on in other programs. */
const destinations = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

const noAgent = "is not supported; spans go to OTEL_EXPORTER_OTLP_ENDPOINT";
/** Variables of ways to send spans that are not supported. */
const withoutEffect: Readonly<Record<string, string>> = {
  JAEGER_AGENT_HOST: noAgent,
  JAEGER_AGENT_PORT: noAgent,
  JAEGER_ENDPOINT: noAgent,
  JAEGER_USER: noAgent,
  JAEGER_PASSWORD: noAgent,
  JAEGER_SAMPLER_MANAGER_HOST_PORT: "is not supported; see OTEL_TRACES_SAMPLER",
  JAEGER_SAMPLING_ENDPOINT: "is not supported; see OTEL_TRACES_SAMPLER",
  JAEGER_TRACEID_128BIT: "has no effect: ids of traces always have 128 bits",
  JAEGER_REPORTER_MAX_QUEUE_SIZE: "has no effect; see OTEL_BSP_MAX_QUEUE_SIZE",
  JAEGER_REPORTER_FLUSH_INTERVAL: "has no effect; see OTEL_BSP_SCHEDULE_DELAY",
};
/** Variables with values that have no effect. */
const overHttp = { known: ["http/protobuf"], why: "spans are sent by http/protobuf" };
const knownValues: Readonly<Record<string, { readonly known: readonly string[]; why: string }>> = {
  OTEL_TRACES_EXPORTER: { known: ["otlp", "none"], why: "spans are sent by otlp" },
  OTEL_EXPORTER_OTLP_PROTOCOL: overHttp,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: overHttp,
  OTEL_PROPAGATORS: {
    known: ["tracecontext", "none"],
    why: "callers are told of traces by tracecontext",
  },
};

/** Reads the variables of OpenTelemetry; variables of Jaeger with the same meaning fill the gaps. */
export function readTracingEnvironment(given: Environment, defaultName: string): TracingSettings {
  const [named, fromJaeger] = jaegerAsOtel(given);
  const env = { ...named, ...withoutEmpty(given) };
  const warnings = [...fromJaeger];
  for (const [name, why] of Object.entries(withoutEffect))
    if (env[name] !== undefined) warnings.push(`${name} ${why}`);
  for (const [name, { known, why }] of Object.entries(knownValues)) {
    const others = listOf(env[name]).filter((value) => !known.includes(value));
    if (others.length > 0) warnings.push(`${name}: ${others.join(",")} is not supported; ${why}`);
  }
  const resource = pairsOf(env.OTEL_RESOURCE_ATTRIBUTES, decodeURIComponent);
  return {
    isOff: env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none",
    serviceName: env.OTEL_SERVICE_NAME ?? resource["service.name"] ?? defaultName,
    resource,
    ...samplerOf(env, warnings),
    warnings,
  };
}

function samplerOf(
  {
    OTEL_TRACES_SAMPLER: name = "parentbased_always_on",
    OTEL_TRACES_SAMPLER_ARG: arg,
  }: Environment,
  warnings: string[],
): Pick<TracingSettings, "ratio" | "followsParent"> {
  const [, parent, root] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (root === undefined) {
    warnings.push(`OTEL_TRACES_SAMPLER: ${name} is not supported; parentbased_always_on is used`);
    return { ratio: 1, followsParent: true };
  }
  const followsParent = parent !== undefined;
  if (root !== "traceidratio") return { ratio: root === "always_on" ? 1 : 0, followsParent };
  const ratio = Number(arg ?? 1);
  if (ratio >= 0 && ratio <= 1) return { ratio, followsParent };
  warnings.push(`OTEL_TRACES_SAMPLER_ARG: ${arg} is no number from 0 to 1; all traces are kept`);
  return { ratio: 1, followsParent };
}

/** Translates variables of Jaeger to those of OpenTelemetry; with warnings about values that have no translation. */
function jaegerAsOtel(env: Environment): [Environment, string[]] {
  const warnings: string[] = [];
  const { JAEGER_SAMPLER_TYPE: type = "", JAEGER_SAMPLER_PARAM: param = "1" } = withoutEmpty(env);
  const samplers: Readonly<Record<string, string>> = {
    const: Number(param) === 0 ? "parentbased_always_off" : "parentbased_always_on",
    probabilistic: "parentbased_traceidratio",
  };
  const sampler = samplers[type];
  if (type !== "" && sampler === undefined)
    warnings.push(`JAEGER_SAMPLER_TYPE: ${type} is not supported; see OTEL_TRACES_SAMPLER`);
  const otel = {
    OTEL_SDK_DISABLED: env.JAEGER_DISABLED,
    OTEL_SERVICE_NAME: env.JAEGER_SERVICE_NAME,
    OTEL_RESOURCE_ATTRIBUTES: env.JAEGER_TAGS,
    OTEL_TRACES_SAMPLER: sampler,
    OTEL_TRACES_SAMPLER_ARG: sampler === undefined ? undefined : param,
  };
  return [withoutEmpty(otel), warnings];
}

/** Drops variables that are empty: they count as not set. */
function withoutEmpty(env: Environment): Record<string, string> {
  const set = Object.entries(env).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(set) as Record<string, string>;
}

function listOf(text = ""): string[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "");
}

/** `a=1,b=2` */
function pairsOf(text: string | undefined, decode: (value: string) => string) {
  const pairs: Record<string, string> = {};
  for (const pair of listOf(text)) {
    const at = pair.indexOf("=");
    if (at <= 0) continue;
    const value = pair.slice(at + 1).trim();
    try {
      pairs[pair.slice(0, at).trim()] = decode(value);
    } catch {
      pairs[pair.slice(0, at).trim()] = value;
    }
  }
  return pairs;
}
