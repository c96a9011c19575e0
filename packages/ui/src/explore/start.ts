import { effect } from "@preact/signals";
import { answer, firstQuery, runQuery, trouble } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import { troubleOf } from "../api/errors.js";
import { fetchLabels } from "../api/fields.js";
import { fetchVolume } from "../api/stats.js";
import { draft, route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";

/** Runs what the address asks for, and again when the back button changes it; without a query it makes a useful one. */
export function startExplore(): void {
  let shown = "";
  effect(() => {
    const { screen, q, from, to, tenant } = route.value;
    if (screen !== "explore") return;
    const wanted = JSON.stringify([q, from, to, tenant]);
    if (wanted === shown) return;
    shown = wanted;
    if (q === "") return void beginWithData();
    const ran = answer.peek();
    queueMicrotask(() => {
      if (draft.peek().trim() === q && (ran?.text !== q || isBack)) runQuery("replace");
      isBack = false;
    });
  });
  addEventListener("popstate", () => {
    isBack = true;
  });
}

let isBack = false;
const valuesWanted = { least: 2, most: 50 };

/** Asks for streams by the label of 2 to 50 values that covers most bytes. */
async function beginWithData(): Promise<void> {
  const { fromNs, toNs } = resolveRange(route.peek(), Date.now());
  const span = { startNs: String(fromNs), endNs: String(toNs) };
  try {
    const labels = await fetchLabels(undefined, span);
    const { least, most } = valuesWanted;
    const good = labels.filter(({ values }) => values >= least && values <= most);
    const candidates = (good.length > 0 ? good : labels).slice(0, 8);
    const label = await largest(
      candidates.map(({ name }) => name),
      span,
    );
    if (label === undefined || draft.peek() !== "") return;
    draft.value = firstQuery(label);
    runQuery("replace");
  } catch (error) {
    if (!isAbort(error)) trouble.value = troubleOf(error, 0, route.peek().tenant);
  }
}

/** The label whose streams have most bytes; service_name wins a tie. */
async function largest(
  names: readonly string[],
  span: { startNs: string; endNs: string },
): Promise<string | undefined> {
  const sums = await Promise.all(
    names.map(async (label) => {
      const query = `{${label}=~".+"}`;
      const volume = await fetchVolume({ query, label, limit: 1000 }, span).catch(() => []);
      const bytes = volume.reduce((sum, { points }) => sum + (points[0]?.[1] ?? 0), 0);
      return { label, bytes };
    }),
  );
  sums.sort(
    (a, b) =>
      b.bytes - a.bytes || Number(b.label === "service_name") - Number(a.label === "service_name"),
  );
  return sums[0]?.label;
}
