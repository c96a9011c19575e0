/**
 * The limits of one tenant that pushes are held against; the names are those of `limits_config`. Sizes are bytes.
 * A change is noticed by the identity of the object, so `limitsOf` must return the same one until something changed.
 */
export interface PushLimits {
  readonly ingestionRateStrategy: "global" | "local";
  /** MiB per second of lines and structured metadata. */
  readonly ingestionRateMb: number;
  /** MiB; a push larger than this never passes. */
  readonly ingestionBurstSizeMb: number;
  readonly maxLabelNameLength: number;
  readonly maxLabelValueLength: number;
  /** `service_name` does not count. */
  readonly maxLabelNamesPerSeries: number;
  readonly rejectOldSamples: boolean;
  readonly rejectOldSamplesMaxAgeMs: number;
  /** How far ahead of now an entry may lie. */
  readonly creationGracePeriodMs: number;
  /** 0: no limit */
  readonly maxLineSize: number;
  readonly maxLineSizeTruncate: boolean;
  readonly maxLineSizeTruncateIdentifier: string;
  readonly incrementDuplicateTimestamp: boolean;
  /** Labels that name the service, best first; empty: no discovery. */
  readonly discoverServiceName: readonly string[];
  readonly discoverLogLevels: boolean;
  /** Names of labels, metadata and line fields that carry a level, best first. */
  readonly logLevelFields: readonly string[];
  readonly logLevelFromJsonMaxDepth: number;
  readonly allowStructuredMetadata: boolean;
  /** Names and values of one entry; 0: no limit */
  readonly maxStructuredMetadataSize: number;
  /** Pairs of one entry; 0: no limit */
  readonly maxStructuredMetadataEntriesCount: number;
  /** ms since the epoch; 0: not blocked */
  readonly blockIngestionUntilMs: number;
  /** 200: pushes are dropped without a word. */
  readonly blockIngestionStatusCode: number;
  readonly enforcedLabels: readonly string[];
}

const hourMs = 3_600_000;

/** The limits of a tenant for which nothing is configured. */
export const defaultPushLimits: PushLimits = {
  ingestionRateStrategy: "global",
  ingestionRateMb: 4,
  ingestionBurstSizeMb: 6,
  maxLabelNameLength: 1024,
  maxLabelValueLength: 2048,
  maxLabelNamesPerSeries: 15,
  rejectOldSamples: true,
  rejectOldSamplesMaxAgeMs: 168 * hourMs,
  creationGracePeriodMs: 600_000,
  maxLineSize: 256 * 1024,
  maxLineSizeTruncate: false,
  maxLineSizeTruncateIdentifier: "",
  incrementDuplicateTimestamp: false,
  discoverServiceName: [
    "service",
    "app",
    "application",
    "app_name",
    "name",
    "app_kubernetes_io_name",
    "container",
    "container_name",
    "k8s_container_name",
    "component",
    "workload",
    "job",
    "k8s_job_name",
  ],
  discoverLogLevels: true,
  logLevelFields: [
    "level",
    "LEVEL",
    "Level",
    "log.level",
    "severity",
    "SEVERITY",
    "Severity",
    "SeverityText",
    "lvl",
    "LVL",
    "Lvl",
    "severity_text",
    "Severity_Text",
    "SEVERITY_TEXT",
  ],
  logLevelFromJsonMaxDepth: 2,
  allowStructuredMetadata: true,
  maxStructuredMetadataSize: 64 * 1024,
  maxStructuredMetadataEntriesCount: 128,
  blockIngestionUntilMs: 0,
  blockIngestionStatusCode: 260,
  enforcedLabels: [],
};
