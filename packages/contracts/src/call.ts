/** What every call between services takes beside its message: it ends soon after the signal. */
export interface CallOptions {
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch: the other side ends by itself then, even if it hears no more of the caller. */
  readonly deadlineMs?: number | undefined;
}

/** Whose query it is, and how much work it is. */
export interface QueryShare {
  readonly tenant: string;
  /** Who asks within the tenant, from the outside in (`X-Service-Actor-Path`). */
  readonly actors: readonly string[];
  /** Bytes of lines that the whole query may have to read, as far as is known. */
  readonly cost: number;
}
