import {
  createTraceState,
  DiagLogLevel,
  diag,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import type { Logger } from "../logger.js";
import type { SpanFacts, SpanSink, TraceContext } from "../tracing.js";

/** The settings of the environment that the exporter does not read itself. */
export interface TracingSettings {
  readonly isOff: boolean;
  readonly serviceName: string;
  /** Attributes of all spans, beside the name. */
  readonly resource: Readonly<Record<string, string>>;
  /** Share of new traces that are kept, 0 to 1. */
  readonly ratio: number;
  /** A trace of a caller is kept if the caller keeps it. */
  readonly followsParent: boolean;
  /** Variables that are set but have no effect or a bad value. */
  readonly warnings: readonly string[];
}

/** Sends spans to a collector. */
export interface OtlpSink extends SpanSink {
  /** Sends the remaining spans, for two seconds at most. */
  stop(): Promise<void>;
}

/** The end of a process waits this long for the collector. */
const maxStopMs = 2000;
/** A trace is kept if this many last digits of its id are below the ratio. */
const ratioDigits = 8;
const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT };
const scope = { name: "skald" };

/**
 * Sends spans in batches to the collector of OTEL_EXPORTER_OTLP_ENDPOINT. The queue holds at most OTEL_BSP_MAX_QUEUE_SIZE; new
 * spans are dropped while it is full.
 */
export function openOtlpSink(
  { serviceName, resource, ratio, followsParent }: TracingSettings,
  { version, log }: { readonly version: string; readonly log: Logger },
): OtlpSink {
  const processor = new BatchSpanProcessor(told(openExporter(log), log));
  const about = resourceFromAttributes({
    "telemetry.sdk.language": "nodejs",
    "telemetry.sdk.name": "opentelemetry",
    "service.version": version,
    ...resource,
    "service.name": serviceName,
  });
  const below = ratio * 16 ** ratioDigits;
  return {
    take: (span) => processor.onEnd(readable(span, about, version)),
    isSampled: (traceId, parent) =>
      parent !== undefined && followsParent
        ? parent.isSampled
        : Number.parseInt(traceId.slice(-ratioDigits), 16) < below,
    stop: async () => {
      const stopped = processor.shutdown().catch(() => undefined);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, maxStopMs);
      });
      await Promise.race([stopped, late]);
      clearTimeout(timer);
    },
  };
}

/** An exporter that reads the environment itself, and logs what it does not understand. */
function openExporter(log: Logger): SpanExporter {
  const warn = (message: string) => log.warn(message);
  const quiet = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    DiagLogLevel.WARN,
  );
  try {
    return new OTLPTraceExporter();
  } finally {
    diag.disable();
  }
}

/** The same exporter, which logs when spans cannot be sent and when they can again. It never fails: nobody could do more. */
function told(exporter: SpanExporter, log: Logger): SpanExporter {
  let isAway = false;
  return {
    shutdown: () => exporter.shutdown(),
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const { code, error } = result;
        const hasFailed = code !== 0;
        if (hasFailed && !isAway) log.warn("spans cannot be sent; they are dropped", { error });
        if (!hasFailed && isAway) log.info("spans are sent again");
        isAway = hasFailed;
        done({ code: 0 });
      }),
  };
}

function readable(
  span: SpanFacts,
  resource: ReturnType<typeof resourceFromAttributes>,
  version: string,
): ReadableSpan {
  const { name, kind, context, parent, startMs, endMs, attributes, error } = span;
  return {
    ...{ name, resource, events: [], links: [], ended: true },
    kind: kinds[kind],
    spanContext: () => contextOf(context),
    ...(parent === undefined ? {} : { parentSpanContext: contextOf(parent) }),
    startTime: timeOf(startMs),
    endTime: timeOf(endMs),
    duration: timeOf(endMs - startMs),
    status:
      error === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: error },
    attributes: { ...attributes },
    instrumentationScope: { ...scope, version },
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
  };
}

function contextOf({ traceId, spanId, isSampled, state }: TraceContext): SpanContext {
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const traceState = state === undefined ? {} : { traceState: createTraceState(state) };
  return { traceId, spanId, traceFlags, ...traceState };
}

/** Whole seconds, and the remaining ns. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
