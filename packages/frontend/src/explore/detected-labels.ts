import type { Lists, StreamSelection } from "../lists.js";
import type { QueryContext } from "../query-context.js";

/** A label that tells streams apart in a way that people think in. */
export interface DetectedLabel {
  readonly label: string;
  /** Distinct values. */
  readonly cardinality: number;
}

/** Labels that are listed whatever their values are. */
const alwaysKept = new Set(["cluster", "namespace", "instance", "pod"]);
/** Labels whose values are asked for at the same time. */
const labelsAtOnce = 4;

/** The labels of streams, but those whose values are all numbers or ids; sorted by name. */
export async function detectLabels(
  lists: Pick<Lists, "labelNames" | "labelValues">,
  selection: StreamSelection,
  context: QueryContext,
): Promise<DetectedLabel[]> {
  const names = await lists.labelNames(selection, context);
  const found: DetectedLabel[] = [];
  for (let at = 0; at < names.length; at += labelsAtOnce) {
    const some = names.slice(at, at + labelsAtOnce);
    const values = await Promise.all(
      some.map((name) => lists.labelValues(name, selection, context)),
    );
    some.forEach((label, i) => {
      const own = values[i]!.filter((value) => value !== "");
      if (isTelling(label, own)) found.push({ label, cardinality: own.length });
    });
  }
  return found;
}

function isTelling(label: string, values: readonly string[]): boolean {
  if (values.length === 0) return false;
  return alwaysKept.has(label) || areFlags(values) || !values.every(isId);
}

/** Both, or one, of the numbers that stand for no and yes. */
function areFlags(values: readonly string[]): boolean {
  return values.length <= 2 && values.every((value) => value === "0" || value === "1");
}

const numberText = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const uuidText =
  /^(?:urn:uuid:)?\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?$/i;

function isId(value: string): boolean {
  return numberText.test(value) || uuidText.test(value);
}
