import { Counter, type Registry } from "prom-client";

/** The counters of the write path, by the names that public dashboards and alerts use. */
export interface DistributorMetrics {
  readonly bytesReceived: Counter<"tenant">;
  readonly linesReceived: Counter<"tenant">;
  readonly structuredMetadataBytesReceived: Counter<"tenant">;
  readonly discardedSamples: Counter<"reason" | "tenant">;
  readonly discardedBytes: Counter<"reason" | "tenant">;
  readonly mutatedSamples: Counter<"reason" | "tenant">;
  readonly mutatedBytes: Counter<"reason" | "tenant">;
  readonly ingesterAppends: Counter<"ingester">;
  readonly ingesterAppendFailures: Counter<"ingester">;
}

/** Registers the counters under a namespace, `loki` by default in the configuration. */
export function createDistributorMetrics(
  registry: Registry,
  namespace: string,
): DistributorMetrics {
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    new Counter<T>({ name: `${namespace}_${name}`, help, labelNames, registers: [registry] });
  const refused = ["reason", "tenant"] as const;
  return {
    bytesReceived: counter("distributor_bytes_received_total", "Bytes of lines received.", [
      "tenant",
    ]),
    linesReceived: counter("distributor_lines_received_total", "Lines received.", ["tenant"]),
    structuredMetadataBytesReceived: counter(
      "distributor_structured_metadata_bytes_received_total",
      "Bytes of structured metadata received.",
      ["tenant"],
    ),
    discardedSamples: counter("discarded_samples_total", "Entries that were refused.", refused),
    discardedBytes: counter("discarded_bytes_total", "Bytes of refused entries.", refused),
    mutatedSamples: counter("mutated_samples_total", "Entries changed on the way in.", refused),
    mutatedBytes: counter("mutated_bytes_total", "Bytes cut from changed entries.", refused),
    ingesterAppends: counter("distributor_ingester_appends_total", "Batches sent to ingesters.", [
      "ingester",
    ]),
    ingesterAppendFailures: counter(
      "distributor_ingester_append_failures_total",
      "Batches that an ingester failed to take.",
      ["ingester"],
    ),
  };
}
