import type { Metrics } from "@skald/runtime";

type Counter = ReturnType<Metrics["counter"]>;

/** The counters of the write path, by the names that public dashboards and alerts use. */
export interface DistributorMetrics {
  readonly bytesReceived: Counter;
  readonly linesReceived: Counter;
  readonly structuredMetadataBytesReceived: Counter;
  readonly discardedSamples: Counter;
  readonly discardedBytes: Counter;
  readonly mutatedSamples: Counter;
  readonly mutatedBytes: Counter;
  readonly ingesterAppends: Counter;
  readonly ingesterAppendFailures: Counter;
}

/** Registers the counters of the write path. */
export function createDistributorMetrics(metrics: Pick<Metrics, "counter">): DistributorMetrics {
  const refused = ["reason", "tenant"];
  const received = (what: string, help: string) =>
    metrics.counter(`distributor_${what}_received_total`, help, ["tenant"]);
  const appends = (what: string, help: string) =>
    metrics.counter(`distributor_ingester_${what}_total`, help, ["ingester"]);
  return {
    bytesReceived: received("bytes", "Bytes of lines received."),
    linesReceived: received("lines", "Lines received."),
    structuredMetadataBytesReceived: received(
      "structured_metadata_bytes",
      "Bytes of structured metadata received.",
    ),
    discardedSamples: metrics.counter(
      "discarded_samples_total",
      "Entries that were refused.",
      refused,
    ),
    discardedBytes: metrics.counter("discarded_bytes_total", "Bytes of refused entries.", refused),
    mutatedSamples: metrics.counter(
      "mutated_samples_total",
      "Entries changed on the way in.",
      refused,
    ),
    mutatedBytes: metrics.counter(
      "mutated_bytes_total",
      "Bytes cut from changed entries.",
      refused,
    ),
    ingesterAppends: appends("appends", "Batches sent to ingesters."),
    ingesterAppendFailures: appends("append_failures", "Batches that an ingester failed to take."),
  };
}
