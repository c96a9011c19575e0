import { deserialize, serialize } from "node:v8";
import type { LogPartial } from "@skald/logql";
import type { EncodedOutcome, ScanOutcome, ScanPlan, VolumeOutcome } from "../scan.js";
import { decodeRowLabels, encodeRowLabels, type RowLabelColumns } from "./row-labels.js";

/** A partial of rows with its labels in columns: as objects they would be most of what crosses. */
type SentRows = Omit<LogPartial, "labels"> & { readonly labels: RowLabelColumns };

export function encodeOutcome(outcome: ScanOutcome | VolumeOutcome): EncodedOutcome {
  const { buffer, byteOffset, byteLength } = serialize(sentForm(outcome));
  // Memory of its own can be moved to another thread.
  if (byteOffset === 0 && byteLength === buffer.byteLength)
    return new Uint8Array(buffer as ArrayBuffer);
  return new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
}

/** Throws when the bytes are not what `encodeOutcome` made. Columns may be views of the bytes. */
export function decodeOutcome<Plan extends ScanPlan>(bytes: EncodedOutcome): ScanOutcome<Plan> {
  const outcome = deserialize(bytes) as ScanOutcome<Plan> | { readonly partial: SentRows };
  if (!("places" in outcome.partial)) return outcome as ScanOutcome<Plan>;
  const { labels } = outcome.partial as SentRows;
  const partial = { ...outcome.partial, labels: decodeRowLabels(labels) };
  return { ...outcome, partial } as unknown as ScanOutcome<Plan>;
}

/** The same for what was counted. */
export function decodeVolumes(bytes: EncodedOutcome): VolumeOutcome {
  return deserialize(bytes) as VolumeOutcome;
}

function sentForm(outcome: ScanOutcome | VolumeOutcome): unknown {
  if (!("partial" in outcome) || !("places" in outcome.partial)) return outcome;
  const { partial } = outcome;
  return { ...outcome, partial: { ...partial, labels: encodeRowLabels(partial.labels) } };
}
