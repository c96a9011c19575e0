import type { Labels } from "@skald/model";
import type { CallOptions } from "./call.js";

/** Answers metric queries at one time, for whoever evaluates rules. */
export interface InstantQuerier {
  /** Throws what the query API answers with: invalid_argument for a text that is no query or breaks a limit, and so on. */
  instant(request: InstantRequest, options: CallOptions): Promise<InstantAnswer>;
}

export interface InstantRequest {
  readonly tenant: string;
  /** LogQL. */
  readonly query: string;
  /** ns since the epoch */
  readonly timeNs: bigint;
}

/** A number is one sample without labels; anything but a vector or a scalar is `other`. */
export type InstantAnswer =
  | { readonly kind: "vector"; readonly samples: readonly InstantSample[] }
  | { readonly kind: "scalar"; readonly value: number }
  | { readonly kind: "other" };

export interface InstantSample {
  readonly labels: Labels;
  readonly value: number;
}
