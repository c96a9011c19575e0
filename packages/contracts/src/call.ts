/** What every call between services takes beside its message: it ends soon after the signal. */
export interface CallOptions {
  readonly signal: AbortSignal;
}
