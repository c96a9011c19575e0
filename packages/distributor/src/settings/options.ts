import type { CallOptions, PushOutcome, PushRequest } from "@skald/contracts";
import type { RawPush, TakeBytes } from "@skald/kernels";
import type { Clock, SkaldError } from "@skald/model";
import type { PushBody, PushStyle } from "@skald/push";
import type { PushLimits } from "./limits.js";
import type { DistributorMetrics } from "./metrics.js";

/** Where checked rows go: the ingester of this process, or those of a ring as one. */
export interface PushTarget {
  /** As that of an ingester. */
  push(request: PushRequest, options: PushTargetOptions): Promise<PushOutcome>;
}

export interface PushTargetOptions extends CallOptions {
  /** Gets what ends when nobody looks at the batch any more, if that may be later than the answer. */
  readonly hold?: ((until: Promise<unknown>) => void) | undefined;
}

export interface DistributorOptions {
  readonly ingester: PushTarget;
  readonly limitsOf: (tenant: string) => PushLimits;
  readonly metrics: DistributorMetrics;
  readonly clock: Clock;
  /** OTLP: resource attributes that become labels of the stream unless a tenant says else; default none. */
  readonly otlpIndexLabels?: readonly string[];
  /** What a body may become in memory; above it 413. */
  readonly maxDecompressedBytes: number;
  /** Distributors that share a global rate; default 1. */
  readonly distributorCount?: () => number;
  /** Decodes elsewhere; used for bodies that would hold this thread too long. Rejects as `decodeBody` throws. */
  readonly decodeInWorker?: (input: PushBody, maxBytes: number) => Promise<RawPush>;
  /** Hears of failures that are not the client's (500), because the client alone would. */
  readonly onFailure?: (error: SkaldError, tenant: string) => void;
  /** Hears of rows that were stored; must copy what it keeps of them. */
  readonly onStored?: (request: PushRequest) => void;
  /** Value of the `ingester` label of the append counters; absent where the target counts for itself. */
  readonly ingesterName?: string;
}

/** A push as it came over HTTP. */
export interface IncomingPush {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly style: PushStyle;
  readonly body: Uint8Array;
  /**
   * Where it may be decoded; nobody looks at that memory any more once the push is answered with success and what `hold`
   * got has ended.
   */
  readonly take?: TakeBytes;
  readonly hold?: (until: Promise<unknown>) => void;
  /** Header `X-Loki-Backfill-Shard`: the rows may be old and get a stream of their own. */
  readonly backfillShard?: string;
}
