import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

/** Takes the spans of this thread. Without one there are no spans, and each function below costs one comparison. */
let sink: SpanSink | undefined;
/** The span within which the caller runs. */
const running = new AsyncLocalStorage<Span | undefined>();
const noSpan = unkeptSpan({ traceId: "", spanId: "", isSampled: false });

/** Sends the spans of this thread to a sink from now on; `undefined` turns them off. */
export function installTracing(to: SpanSink | undefined): void {
  sink = to;
}

/** Whether there are spans: ask before building what only they need. */
export function isTracing(): boolean {
  return sink !== undefined;
}

/** The span within which the caller runs. */
export function currentSpan(): Span | undefined {
  return sink === undefined ? undefined : running.getStore();
}

/** The caller's place in its trace, for a message to a thread or process that continues the work. */
export function currentTrace(): TraceContext | undefined {
  return currentSpan()?.context;
}

/** Runs work as a span: a child of the caller's span, or the first of a new trace. */
export function traced<T>(
  name: string,
  start: SpanStart,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (sink === undefined) return work(noSpan);
  const place = { parent: currentTrace(), isRemote: false };
  return runSpan(beginSpan(sink, name, start, place), work);
}

/** Runs work as the first span of a new trace: for what a process does by itself. */
export function tracedApart<T>(
  name: string,
  start: SpanStart,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (sink === undefined) return work(noSpan);
  const place = { parent: undefined, isRemote: false };
  return runSpan(beginSpan(sink, name, start, place), work);
}

/** Begins a span for work that another process asked for; without a `parent` it is the first of a new trace. */
export function beginServed(
  name: string,
  start: SpanStart,
  parent: TraceContext | undefined,
): Span {
  if (sink === undefined) return noSpan;
  return beginSpan(sink, name, { kind: "server", ...start }, { parent, isRemote: true });
}

/** Begins a child of the caller's span; undefined if the caller is in no span. */
export function beginPart(name: string, start: SpanStart = {}): Span | undefined {
  const parent = currentTrace();
  if (sink === undefined || parent === undefined) return undefined;
  return beginSpan(sink, name, start, { parent, isRemote: false });
}

/** Runs work within a span, and ends the span with the work. */
export function runSpan<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  return withinSpan(span, async () => {
    try {
      const value = await work(span);
      span.end();
      return value;
    } catch (error) {
      span.end(error);
      throw error;
    }
  });
}

/** Runs work within a span; the caller ends the span. */
export function withinSpan<T>(span: Span, work: () => T): T {
  return running.run(span, work);
}

/** Runs work within a span that continues elsewhere, or within none. */
export function within<T>(context: TraceContext | undefined, work: () => T): T {
  if (sink === undefined) return work();
  return running.run(context === undefined ? undefined : unkeptSpan(context), work);
}

/** Takes a span that ended on another thread of this process. */
export function takeSpan(span: SpanFacts): void {
  sink?.take(span);
}

export type SpanKind = "internal" | "server" | "client";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work that is running. */
export interface Span {
  readonly context: TraceContext;
  /** Adds attributes; undefined values are left out. */
  set(attributes: SpanAttributes): void;
  /** Ends the span, with the error if the work failed. Only the first call counts. */
  end(error?: unknown): void;
}

/** A piece of work that has ended; plain data. */
export interface SpanFacts {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: TraceContext;
  /** The span that it is a child of. */
  readonly parent?: TraceContext | undefined;
  /** ms since the epoch */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  /** Text of the error that it failed with. */
  readonly error?: string | undefined;
}

/** Takes spans that have ended, and decides which traces are kept. */
export interface SpanSink {
  take(span: SpanFacts): void;
  /** Called once for each new trace, and for each trace that comes from another process. */
  isSampled(traceId: string, parent: TraceContext | undefined): boolean;
}

export interface SpanStart {
  readonly kind?: SpanKind;
  readonly attributes?: SpanAttributes;
}

/** Longer texts of attributes are cut. */
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

/** A span that is not kept: its trace is not sampled, or its work continues elsewhere. */
function unkeptSpan(context: TraceContext): Span {
  return { context, set: () => undefined, end: () => undefined };
}

/** Begins a span; without a parent it begins a trace as well. */
function beginSpan(
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

/** The steady clock is set again when it is further than this from the system's clock. */
const maxDriftMs = 5;
let epochOfSteady = performance.timeOrigin;

/** ms since the epoch, with fractions; it never goes back unless the system's clock was set. */
function epochMs(): number {
  const steady = performance.now();
  const drift = Date.now() - (epochOfSteady + steady);
  if (Math.abs(drift) > maxDriftMs) epochOfSteady += drift;
  return epochOfSteady + steady;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A place in a trace, as in the headers of W3C Trace Context; plain data. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether spans of this trace are kept. */
  readonly isSampled: boolean;
  /** The `tracestate` of other systems; passed on unchanged. */
  readonly state?: string;
}

/** The standard allows a longer `tracestate` to be dropped. */
const maxStateLength = 512;
const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampledFlag = 1;

/** Reads `traceparent` and `tracestate`; undefined if the first is absent or malformed. */
export function parseTraceparent(
  parent: string | string[] | undefined,
  state: string | string[] | undefined,
): TraceContext | undefined {
  const found = typeof parent === "string" ? traceparentForm.exec(parent) : null;
  if (found === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = found;
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  const text = Array.isArray(state) ? state.join(",") : (state ?? "");
  const isKept = text !== "" && text.length <= maxStateLength;
  return { traceId, spanId, isSampled, ...(isKept ? { state: text } : {}) };
}

/** The header `traceparent` of a place. */
export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The headers `traceparent` and `tracestate`, for a call to another process. */
export function traceHeaders(context: TraceContext): Record<string, string> {
  const { state } = context;
  return {
    traceparent: formatTraceparent(context),
    ...(state === undefined ? {} : { tracestate: state }),
  };
}
