import type { Metrics } from "@skald/runtime";
import type { Tally } from "@skald/runtime/metrics";

type Counter = ReturnType<Metrics["counter"]>;

/** Amounts of a push: entries, and the bytes of their lines and of their metadata. */
export interface ReceivedAmount {
  rows: number;
  lineBytes: number;
  metadataBytes: number;
}

/** The counters of the write path, by the names that public dashboards and alerts use. */
export interface DistributorMetrics {
  /** Counts received entries, refused ones too; internal streams are those that services write for themselves. */
  received(tenant: string, amount: ReceivedAmount, isInternal: boolean): void;
  /** Counts refused entries; their number is unknown when the body was not read. */
  discarded(tenant: string, reason: string, amount: { entries?: number; bytes: number }): void;
  readonly mutatedSamples: Counter;
  readonly mutatedBytes: Counter;
  readonly ingesterAppends: Counter;
  readonly ingesterAppendFailures: Counter;
}

/** Labels that Loki's dashboards expect and that have one value here. */
const everyPush = { retention_hours: "0", policy: "", format: "loki" } as const;
const receivedLabels = ["tenant", "retention_hours", "is_internal_stream", "policy", "format"];
const discardedLabels = ["reason", "tenant", "retention_hours", "policy", "format"];
const mutatedLabels = ["reason", "tenant"];

/** Registers the counters of the write path. */
export function createDistributorMetrics(
  metrics: Pick<Metrics, "counter" | "tallies">,
): DistributorMetrics {
  const mutated = (what: string, help: string) =>
    metrics.counter(`mutated_${what}_total`, help, mutatedLabels);
  const appends = (what: string, help: string) =>
    metrics.counter(`distributor_ingester_${what}_total`, help, ["ingester"]);
  return {
    received: receivedCounter(metrics),
    discarded: discardedCounter(metrics),
    mutatedSamples: mutated("samples", "Entries changed on the way in."),
    mutatedBytes: mutated("bytes", "Bytes cut from changed entries."),
    ingesterAppends: appends("appends", "Batches sent to ingesters."),
    ingesterAppendFailures: appends("append_failures", "Batches that an ingester failed to take."),
  };
}

/** The counters of one tenant and kind of stream. */
interface TenantTallies {
  readonly lines: Tally;
  readonly bytes: Tally;
  readonly metadata: Tally;
}

/** Number of tenants whose counters are kept; those of others are looked up by their labels. */
const maxTenants = 16 * 1024;

function receivedCounter(metrics: Pick<Metrics, "tallies">): DistributorMetrics["received"] {
  const counter = (what: string, help: string, labels: readonly string[]) =>
    metrics.tallies(`distributor_${what}_received_total`, help, labels);
  const bytes = counter("bytes", "Bytes of lines and metadata received.", receivedLabels);
  const metadata = counter(
    "structured_metadata_bytes",
    "Bytes of structured metadata received.",
    receivedLabels,
  );
  const lines = counter(
    "lines",
    "Lines received.",
    receivedLabels.filter((name) => name !== "retention_hours"),
  );
  const talliesOf = (tenant: string, isInternal: boolean): TenantTallies => {
    const { retention_hours, ...others } = everyPush;
    const kind = { is_internal_stream: String(isInternal), ...others };
    const labels = { tenant, retention_hours, ...kind };
    return { lines: lines({ tenant, ...kind }), bytes: bytes(labels), metadata: metadata(labels) };
  };
  const known = [new Map<string, TenantTallies>(), new Map<string, TenantTallies>()] as const;
  return (tenant, { rows, lineBytes, metadataBytes }, isInternal) => {
    const ofKind = known[isInternal ? 1 : 0];
    let tallies = ofKind.get(tenant);
    if (tallies === undefined) {
      if (ofKind.size === maxTenants) ofKind.clear();
      tallies = talliesOf(tenant, isInternal);
      ofKind.set(tenant, tallies);
    }
    tallies.lines.add(rows);
    tallies.bytes.add(lineBytes + metadataBytes);
    if (metadataBytes > 0) tallies.metadata.add(metadataBytes);
  };
}

function discardedCounter(metrics: Pick<Metrics, "counter">): DistributorMetrics["discarded"] {
  const counter = (what: string, help: string) =>
    metrics.counter(`discarded_${what}_total`, help, discardedLabels);
  const samples = counter("samples", "Entries that were refused.");
  const sizes = counter("bytes", "Bytes of refused entries.");
  return (tenant, reason, { entries, bytes }) => {
    const labels = { reason, tenant, ...everyPush };
    if (entries !== undefined) samples.inc(labels, entries);
    sizes.inc(labels, bytes);
  };
}
