import { AsyncLocalStorage } from "node:async_hooks";
import {
  beginSpan,
  type Span,
  type SpanFacts,
  type SpanSink,
  type SpanStart,
  unkeptSpan,
} from "./span.js";
import type { TraceContext } from "./trace-context.js";

export type { Span, SpanAttributes, SpanFacts, SpanKind, SpanSink, SpanStart } from "./span.js";
export * from "./trace-context.js";

/** Where spans of this thread go; undefined: there are none, and all below costs a comparison. */
let sink: SpanSink | undefined;
/** The span within which code runs. */
const running = new AsyncLocalStorage<Span | undefined>();
const noSpan = unkeptSpan({ traceId: "", spanId: "", isSampled: false });

/** Has spans of this thread go to a sink from now on; without one there are none. */
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

/** Where the caller is, for a message to a thread or a process that goes on with its work. */
export function currentTrace(): TraceContext | undefined {
  return currentSpan()?.context;
}

/** Runs work, begun here, as a span: part of the one within which the caller runs, or the first of a trace. */
export function traced<T>(
  name: string,
  start: SpanStart,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (sink === undefined) return work(noSpan);
  const place = { parent: currentTrace(), isRemote: false };
  return runSpan(beginSpan(sink, name, start, place), work);
}

/** The same as the first of a trace, whoever the caller works for: for what a process does by itself. */
export function tracedApart<T>(
  name: string,
  start: SpanStart,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (sink === undefined) return work(noSpan);
  const place = { parent: undefined, isRemote: false };
  return runSpan(beginSpan(sink, name, start, place), work);
}

/** Begins a span for work that another process asked for, where it said which; the first of a trace where it did not. */
export function beginServed(
  name: string,
  start: SpanStart,
  parent: TraceContext | undefined,
): Span {
  if (sink === undefined) return noSpan;
  return beginSpan(sink, name, { kind: "server", ...start }, { parent, isRemote: true });
}

/** Begins a part of the span within which the caller runs; undefined where there is none. */
export function beginPart(name: string, start: SpanStart = {}): Span | undefined {
  const parent = currentTrace();
  if (sink === undefined || parent === undefined) return undefined;
  return beginSpan(sink, name, start, { parent, isRemote: false });
}

/** Runs work within a span, and ends that with it. */
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

/** Runs work within a span that ends by itself. */
export function withinSpan<T>(span: Span, work: () => T): T {
  return running.run(span, work);
}

/** Runs work within a span that goes on elsewhere, or within none. */
export function within<T>(context: TraceContext | undefined, work: () => T): T {
  if (sink === undefined) return work();
  return running.run(context === undefined ? undefined : unkeptSpan(context), work);
}

/** Takes a span that another thread of this process has ended. */
export function takeSpan(span: SpanFacts): void {
  sink?.take(span);
}
