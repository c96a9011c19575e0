/** What every call between services takes beside its message: it ends soon after the signal. */
export interface CallOptions {
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch: the other side ends by itself then, even if it hears no more of the caller. */
  readonly deadlineMs?: number | undefined;
}
