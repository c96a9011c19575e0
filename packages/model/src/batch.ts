/** Forms of a push body after its content encoding is undone. */
export type PushFormat = "protobuf" | "json" | "legacy_json" | "otlp_protobuf" | "otlp_json";
export type PushEncoding = "identity" | "gzip" | "deflate" | "zstd" | "lz4";

/** One stream of a batch: the rows `rowStart .. rowEnd`, in order of arrival. */
export interface BatchStream {
  /** Canonical label text, the identity of the stream. */
  readonly text: string;
  /** Position of the stream in the push it came from. */
  readonly ordinal: number;
  readonly rowStart: number;
  readonly rowEnd: number;
}

/**
 * The accepted rows of one push for one tenant, in columns: what a distributor hands to ingesters.
 * Lines and metadata values are ranges of `bytes`, the decoded body, so nothing was copied per line.
 */
export interface Batch {
  readonly rowCount: number;
  readonly streams: readonly BatchStream[];
  /** Whole seconds since the epoch; the rest of each timestamp is in `nanos`. */
  readonly seconds: Float64Array;
  /** 0 .. 999,999,999 */
  readonly nanos: Uint32Array;
  readonly bytes: Uint8Array;
  readonly lineStart: Uint32Array;
  readonly lineLength: Uint32Array;
  /** Row r has the metadata pairs `metaStart[r] .. metaStart[r+1]`, sorted by name, each name once; length: rows + 1 */
  readonly metaStart: Uint32Array;
  /** Index into `metaNames` of each pair. */
  readonly metaName: Uint32Array;
  readonly metaValueStart: Uint32Array;
  readonly metaValueLength: Uint32Array;
  /** Names as stored: sanitised. */
  readonly metaNames: readonly string[];
  /** Code of each row's detected level, see `levelNames`. */
  readonly levels: Uint8Array;
  /** Sum of the line lengths. */
  readonly lineBytes: number;
  /** The push as it was received, for the write-ahead log; absent when rows were changed on the way. */
  readonly source?: BatchSource;
}

/** A push body as received and which of its rows are not in the batch. */
export interface BatchSource {
  readonly format: PushFormat;
  readonly encoding: PushEncoding;
  readonly body: Uint8Array;
  /** Row ordinals of the push that were refused, ascending. */
  readonly dropped: Uint32Array;
  /** What an OTLP body was read with; only for the OTLP forms. */
  readonly otlp?: OtlpReading;
}

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
  /** Time of records that have none, ms since the epoch. Only logs of older versions have it: such pushes are logged in columns now. */
  readonly receivedMs?: number;
}
