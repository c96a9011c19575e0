import type { Metrics } from "@skald/runtime";

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
  /** Counts entries that were changed on the way in, and the bytes that they lost. */
  mutated(tenant: string, reason: string, amount: { rows: number; bytes: number }): void;
  readonly ingesterAppends: Counter;
  readonly ingesterAppendFailures: Counter;
  readonly ingesterAppendTimeouts: Counter;
}

/** Labels that Loki's dashboards expect and that have one value here. */
const everyPush = { retention_hours: "0", policy: "", format: "loki" } as const;

/** Registers the counters of the write path. */
export function createDistributorMetrics(
  metrics: Pick<Metrics, "counter" | "tallies">,
): DistributorMetrics {
  const counter = (name: string, help: string, ...labels: string[]) =>
    metrics.counter(`${name}_total`, help, labels);
  const discarded = (what: string, help: string) =>
    counter(`discarded_${what}`, help, "reason", "tenant", ...Object.keys(everyPush));
  const samples = discarded("samples", "Entries that were refused.");
  const sizes = discarded("bytes", "Bytes of refused entries.");
  const mutated = (what: string, help: string) =>
    counter(`mutated_${what}`, help, "reason", "tenant");
  const mutatedSamples = mutated("samples", "Entries changed on the way in.");
  const mutatedBytes = mutated("bytes", "Bytes cut from changed entries.");
  const appends = (what: string, help: string) =>
    counter(`distributor_ingester_${what}`, help, "ingester");
  return {
    received: receivedCounter(metrics),
    discarded: (tenant, reason, { entries, bytes }) => {
      const labels = { reason, tenant, ...everyPush };
      if (entries !== undefined) samples.inc(labels, entries);
      sizes.inc(labels, bytes);
    },
    mutated: (tenant, reason, { rows, bytes }) => {
      mutatedSamples.inc({ reason, tenant }, rows);
      mutatedBytes.inc({ reason, tenant }, bytes);
    },
    ingesterAppends: appends("appends", "Batches sent to ingesters."),
    ingesterAppendTimeouts: appends(
      "append_timeouts",
      "Batches that an ingester took too long to take.",
    ),
    ingesterAppendFailures: appends("append_failures", "Batches that an ingester failed to take."),
  };
}

/** Number of tenants whose counters are kept; those of others are looked up by their labels. */
const maxTenants = 16 * 1024;

function receivedCounter(metrics: Pick<Metrics, "tallies">): DistributorMetrics["received"] {
  const others = ["is_internal_stream", "policy", "format"];
  const counter = (what: string, help: string, ...labels: string[]) =>
    metrics.tallies(`distributor_${what}_received_total`, help, ["tenant", ...labels, ...others]);
  const bytes = counter("bytes", "Bytes of lines and metadata received.", "retention_hours");
  const metadata = counter(
    "structured_metadata_bytes",
    "Bytes of structured metadata received.",
    "retention_hours",
  );
  const lines = counter("lines", "Lines received.");
  const talliesOf = (tenant: string, isInternal: boolean) => {
    const { retention_hours, ...rest } = everyPush;
    const kind = { is_internal_stream: String(isInternal), ...rest };
    const labels = { tenant, retention_hours, ...kind };
    return { lines: lines({ tenant, ...kind }), bytes: bytes(labels), metadata: metadata(labels) };
  };
  type Tallies = ReturnType<typeof talliesOf>;
  const known = [new Map<string, Tallies>(), new Map<string, Tallies>()] as const;
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
