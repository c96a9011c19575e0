import { effect, signal } from "@preact/signals";
import { answer } from "../answer/ask.js";
import { leaveLive } from "../answer/live.js";
import { fail, isAsked, noteAsked, runQuery, trouble } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import { fetchLabels } from "../api/fields.js";
import { fetchVolume } from "../api/stats.js";
import { loadPart } from "../parts/lazy.js";
import { loadConfig, loadLimits } from "../state/config.js";
import { draft, navigate, regexChecked, route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";

/** Loads the check of regular expressions when nothing else is to be done: it is larger than the page. */
function loadRegexWhenIdle(): void {
  const load = () =>
    void loadPart(() => import("@skald/logql/regex")).then(() => (regexChecked.value = true));
  if (typeof requestIdleCallback === "function") requestIdleCallback(load, { timeout: 10_000 });
  else setTimeout(load, 3000);
}

/** The first lines are drawn by then. */
const settledMs = 300;

/** Asks what the server is and allows once the first answer is there: nothing of it is needed before. */
export function loadWhenAnswered(): void {
  const stop = effect(() => {
    const isSettled =
      answer.value ?? trouble.value ?? (isEmpty.value || route.value.screen !== "explore");
    if (!isSettled) return;
    setTimeout(() => {
      void loadConfig();
      void loadLimits();
      loadRegexWhenIdle();
    }, settledMs);
    queueMicrotask(() => stop());
  });
}

/** Runs what the address asks for, and again when the back button changes it; without a query it makes a useful one. */
export function startExplore(): void {
  effect(() => {
    const { screen, q } = route.value;
    if (screen !== "explore") return;
    if (q === "") return void beginWithData();
    queueMicrotask(() => {
      if (isAsked() || route.peek().q !== q) return;
      noteAsked();
      draft.value = q;
      leaveLive();
      runQuery("replace");
    });
  });
}

const valuesWanted = { least: 2, most: 50 };

/** Whether there is nothing at all yet, so that the page says how to send logs. */
export const isEmpty = signal(false);

/** How far back the first query looks, the shortest that finds something. */
const firstRanges = ["1h", "24h", "7d", "30d"];

/** Asks for streams by the label of 2 to 50 values that covers most bytes; tries again while the server is away. */
export async function beginWithData(): Promise<void> {
  try {
    for (const back of firstRanges) {
      const range = { from: `now-${back}`, to: "now" };
      const { fromNs, toNs } = resolveRange(range, Date.now());
      const span = { startNs: String(fromNs), endNs: String(toNs) };
      const labels = await fetchLabels(undefined, span);
      if (labels.length === 0) continue;
      const { least, most } = valuesWanted;
      const good = labels.filter(({ values }) => values >= least && values <= most);
      const candidates = (good.length > 0 ? good : labels).slice(0, 8).map(({ name }) => name);
      const label = await largest(candidates, span);
      isEmpty.value = false;
      if (label === undefined || draft.peek() !== "") return;
      draft.value = `{${label}=~".+"}`;
      navigate(range, "replace");
      runQuery("replace");
      return;
    }
    isEmpty.value = true;
    trouble.value = undefined;
  } catch (error) {
    if (!isAbort(error)) fail(error, () => void beginWithData());
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
