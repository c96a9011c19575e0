import type { QueryFacts } from "@skald/frontend";
import type { Metrics } from "@skald/runtime";

/** From here on a query counts as slow. */
const slowSeconds = 10;
const latencyBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128];
const speedBuckets = [1, 10, 50, 100, 200, 400, 600, 800, 1000, 2000, 4000, 8000, 16000].map(
  (n) => n * 1_000_000,
);

const partBuckets = [1, 4, 16, 64, 256];

/** Counts queries by the metrics that public dashboards read. */
export function queryObserver(metrics: Metrics): (facts: QueryFacts) => void {
  const labels = ["status_code", "type", "range"];
  const name = (what: string) => `logql_querystats_${what}`;
  const latency = metrics.histogram(
    name("latency_seconds"),
    "Time of queries.",
    labels,
    latencyBuckets,
  );
  const speed = metrics.histogram(
    name("bytes_processed_per_seconds"),
    "Bytes of lines that queries read in a second.",
    [...labels, "latency_type"],
    speedBuckets,
  );
  const chunks = metrics.counter(
    name("downloaded_chunk_total"),
    "Segments that queries read.",
    labels,
  );
  const duplicates = metrics.counter(
    name("duplicates_total"),
    "Lines that were left out because another source has them.",
  );
  const sent = metrics.counter(
    name("ingester_sent_lines_total"),
    "Lines that ingesters answered with.",
  );
  const parts = metrics.histogram(
    "query_frontend_partitions",
    "Parts that a query was cut into by time.",
    [],
    partBuckets,
  );
  return ({ status, type, range, seconds, stats }) => {
    const kind = { status_code: String(status), type, range };
    latency.observe(kind, seconds);
    if (stats === undefined) return;
    parts.observe(stats.subqueries ?? 1);
    const { ingester, store } = stats;
    const bytes = [ingester, store].reduce((n, s) => n + s.headBytes + s.decompressedBytes, 0);
    const latency_type = seconds >= slowSeconds ? "slow" : "fast";
    speed.observe({ ...kind, latency_type }, bytes / Math.max(seconds, 1e-6));
    chunks.inc(kind, ingester.sourcesScanned + store.sourcesScanned);
    duplicates.inc(ingester.duplicates + store.duplicates);
    sent.inc(ingester.linesSent);
  };
}
