import type { GoMap } from "../../template/value/value.js";
import { errorDetailsLabel, errorLabel } from "../row/labels.js";
import { labelState, type RowLabels } from "../row/row-labels.js";

/** The labels of the current row as the data of a template. */
export function templateLabels(labels: RowLabels): GoMap {
  const get = (name: string): string | undefined => {
    if (name === errorLabel && labels.error !== "") return labels.error;
    if (name === errorDetailsLabel && labels.errorDetails !== "") return labels.errorDetails;
    return labels.text(labels.names.slotOf(name));
  };
  return { kind: "map", missing: "", get, keys: () => rowLabelNames(labels) };
}

/** The labels of the row as they are now, for those who read them after changes. */
export function copyLabels(labels: RowLabels, wanted: readonly string[] | "all"): GoMap {
  const live = templateLabels(labels);
  const values = new Map<string, string>();
  for (const name of wanted === "all" ? live.keys() : wanted) {
    const value = live.get(name);
    if (value !== undefined) values.set(name, value as string);
  }
  return {
    kind: "map",
    missing: "",
    get: (name) => values.get(name),
    keys: () => [...values.keys()].sort(),
  };
}

/** Names of all labels of the row, errors included, sorted. */
export function rowLabelNames(labels: RowLabels): readonly string[] {
  const names = new Set(labels.streamSlots.map((slot) => labels.names.nameOf(slot)));
  for (const { slot } of labels.metadata?.columns ?? []) {
    if (labels.isMetadata(slot)) names.add(labels.names.nameOf(slot));
  }
  for (let i = 0; i < labels.touchedCount; i++) {
    const slot = labels.touched[i]!;
    const name = labels.names.nameOf(slot);
    if (labels.state[slot] === labelState.deleted) names.delete(name);
    else names.add(name);
  }
  if (labels.error !== "") names.add(errorLabel);
  if (labels.errorDetails !== "") names.add(errorDetailsLabel);
  return [...names].sort();
}
