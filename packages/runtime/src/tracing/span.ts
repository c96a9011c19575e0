import { randomBytes } from "node:crypto";
import type { TraceContext } from "./trace-context.js";

export type SpanKind = "internal" | "server" | "client";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work that is under way. */
export interface Span {
  readonly context: TraceContext;
  /** Adds facts; one that is undefined is left out. */
  set(attributes: SpanAttributes): void;
  /** Ends it, with what it failed with if it did; of consequence once. */
  end(error?: unknown): void;
}

/** A piece of work that is over; plain data. */
export interface SpanFacts {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: TraceContext;
  /** That of which it is a part. */
  readonly parent?: TraceContext | undefined;
  /** ms since the epoch */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  /** What it failed with. */
  readonly error?: string | undefined;
}

/** What takes spans that are over, and says which traces are kept. */
export interface SpanSink {
  take(span: SpanFacts): void;
  /** Asked once for each trace, or where one comes in from another process. */
  isSampled(traceId: string, parent: TraceContext | undefined): boolean;
}

export interface SpanStart {
  readonly kind?: SpanKind;
  readonly attributes?: SpanAttributes;
}

/** The longest text of an attribute; what is beyond is cut. */
const maxTextLength = 1024;
const traceIdBytes = 16;
const spanIdBytes = 8;

/** A span of a trace that is kept. */
class KeptSpan implements Span {
  readonly #sink: SpanSink;
  readonly #startMs = epochMs();
  readonly #begun: Pick<SpanFacts, "name" | "kind" | "parent">;
  readonly #attributes: Record<string, string | number | boolean> = {};
  readonly context: TraceContext;
  #isOver = false;

  constructor(
    sink: SpanSink,
    context: TraceContext,
    begun: Pick<SpanFacts, "name" | "kind" | "parent">,
  ) {
    this.#sink = sink;
    this.context = context;
    this.#begun = begun;
  }

  set(attributes: SpanAttributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined) continue;
      this.#attributes[name] = typeof value === "string" ? value.slice(0, maxTextLength) : value;
    }
  }

  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink.take({
      ...this.#begun,
      context: this.context,
      startMs: this.#startMs,
      endMs: epochMs(),
      attributes: this.#attributes,
      error: error === undefined ? undefined : textOf(error).slice(0, maxTextLength),
    });
  }
}

/** A span that nobody keeps: of a trace that is not sampled, or of work that goes on elsewhere. */
export function unkeptSpan(context: TraceContext): Span {
  return { context, set: () => undefined, end: () => undefined };
}

/** Begins a span; `parent` undefined: and a trace with it. */
export function beginSpan(
  sink: SpanSink,
  name: string,
  { kind = "internal", attributes = {} }: SpanStart,
  { parent, isRemote }: { readonly parent: TraceContext | undefined; readonly isRemote: boolean },
): Span {
  const traceId = parent?.traceId ?? randomBytes(traceIdBytes).toString("hex");
  const isSampled =
    parent === undefined || isRemote ? sink.isSampled(traceId, parent) : parent.isSampled;
  const spanId = randomBytes(spanIdBytes).toString("hex");
  const state = parent?.state;
  const context = { traceId, spanId, isSampled, ...(state === undefined ? {} : { state }) };
  if (!isSampled) return unkeptSpan(context);
  const span = new KeptSpan(sink, context, { name, kind, parent });
  span.set(attributes);
  return span;
}

/** How far the steady clock may be from that of the system before it is set anew. */
const maxDriftMs = 5;
let epochOfSteady = performance.timeOrigin;

/** ms since the epoch, with fractions, and steady from one call to the next but where the system's clock was set. */
function epochMs(): number {
  const steady = performance.now();
  const drift = Date.now() - (epochOfSteady + steady);
  if (Math.abs(drift) > maxDriftMs) epochOfSteady += drift;
  return epochOfSteady + steady;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
