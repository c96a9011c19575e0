import type { Metrics } from "@skald/runtime/metrics";

/** What is counted of samples on their way, under the names that dashboards of rulers ask for. */
export function remoteWriteMetrics(metrics: Metrics): RemoteWriteMetrics {
  const tenant = ["tenant"];
  const client = ["tenant", "remote_name"];
  const storage = "ruler_wal_prometheus_remote_storage";
  return {
    appended: metrics.counter(
      "ruler_wal_samples_appended_total",
      "Samples written to the log.",
      tenant,
    ),
    diskSize: metrics.gauge("ruler_wal_disk_size", "Bytes of the log.", tenant),
    ready: metrics.gauge(
      "ruler_wal_appender_ready",
      "Whether samples can be written to the log.",
      tenant,
    ),
    overflow: metrics.counter(
      "ruler_wal_dropped_bytes_total",
      "Bytes of the log dropped unsent, for room or age.",
      tenant,
    ),
    sent: metrics.counter(`${storage}_samples_total`, "Samples sent.", client),
    failed: metrics.counter(
      `${storage}_samples_failed_total`,
      "Samples that were refused.",
      client,
    ),
    retried: metrics.counter(`${storage}_samples_retried_total`, "Samples sent again.", client),
    dropped: metrics.counter(
      `${storage}_samples_dropped_total`,
      "Samples dropped by relabelling.",
      client,
    ),
    bytes: metrics.counter(`${storage}_bytes_total`, "Compressed bytes sent.", client),
    seconds: metrics.histogram(
      `${storage}_sent_batch_duration_seconds`,
      "Time of requests.",
      client,
    ),
    highest: metrics.gauge(
      `${storage}_queue_highest_sent_timestamp_seconds`,
      "Time of the newest sample sent.",
      client,
    ),
    newest: metrics.gauge(
      `${storage}_highest_timestamp_in_seconds`,
      "Time of the newest sample appended.",
      tenant,
    ),
  };
}

type Counter = ReturnType<Metrics["counter"]>;
type Gauge = ReturnType<Metrics["gauge"]>;

export interface RemoteWriteMetrics {
  readonly appended: Counter;
  readonly overflow: Counter;
  readonly sent: Counter;
  readonly failed: Counter;
  readonly retried: Counter;
  readonly dropped: Counter;
  readonly bytes: Counter;
  readonly diskSize: Gauge;
  readonly ready: Gauge;
  readonly highest: Gauge;
  readonly newest: Gauge;
  readonly seconds: ReturnType<Metrics["histogram"]>;
}
