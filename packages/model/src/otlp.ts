/** What becomes of the attributes that a rule names; `regex` must match a whole name, and counts where it is not empty. */
export interface OtlpAttributeRule {
  readonly action: "index_label" | "structured_metadata" | "drop";
  readonly attributes: readonly string[];
  readonly regex: string;
}

/** How OTLP attributes are kept: the first rule that matches wins, without one they become structured metadata. */
export interface OtlpMapping {
  readonly resource: readonly OtlpAttributeRule[];
  readonly scope: readonly OtlpAttributeRule[];
  readonly log: readonly OtlpAttributeRule[];
  /** Whether the severity text is a label of the stream instead of metadata. */
  readonly severityTextAsLabel: boolean;
}

/** What an OTLP body is read with, so that it gives the same rows in a replay. Plain data: it goes into the log as JSON. */
export interface OtlpReading {
  readonly mapping: OtlpMapping;
  /** Time of records that have none, ms since the epoch. */
  readonly receivedMs: number;
}
