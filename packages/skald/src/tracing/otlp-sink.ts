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
import type { Logger } from "@skald/runtime";
import type { SpanFacts, SpanSink, TraceContext } from "@skald/runtime/tracing";
import type { TracingSettings } from "./environment.js";

/** Sends spans to a collector. */
export interface OtlpSink extends SpanSink {
  /** Sends what is left, for a bounded time. */
  stop(): Promise<void>;
}

/** How long the end of a process waits for a collector. */
const maxStopMs = 2000;
/** A trace is kept when these digits of its id are below the ratio. */
const ratioDigits = 8;
const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT };
const scope = { name: "skald" };

/**
 * Spans go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT in batches, by a queue of at most OTEL_BSP_MAX_QUEUE_SIZE; while
 * the collector does not take them, those that come are dropped.
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

/** Reads the environment; what it does not understand it says to the log. */
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

/** The same exporter, which says when spans cannot be sent and when they can again. It never fails: there is nothing more to do about it. */
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

/** Whole seconds, and ns beyond them. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
