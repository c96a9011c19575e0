/** A place in a trace, as the headers of W3C Trace Context name it; plain data. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether spans of this trace are kept. */
  readonly isSampled: boolean;
  /** What other systems say of the trace; passed on as it came. */
  readonly state?: string;
}

/** A longer `tracestate` may be dropped, says the standard. */
const maxStateLength = 512;
const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampledFlag = 1;

/** Reads `traceparent` and `tracestate`; undefined where the first is absent or not well formed. */
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

/** Both headers, for a call to another process. */
export function traceHeaders(context: TraceContext): Record<string, string> {
  const { state } = context;
  return {
    traceparent: formatTraceparent(context),
    ...(state === undefined ? {} : { tracestate: state }),
  };
}
