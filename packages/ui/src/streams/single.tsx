import { useSignal } from "@preact/signals";
import { formatMatcher } from "@skald/model";
import { useEffect } from "preact/hooks";
import { editQuery } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import type { Span } from "../api/fields.js";
import { fetchInstant } from "../api/lines.js";
import { bytesToRead, fetchExplanation } from "../api/stats.js";
import { formatBytes } from "../parts/format.js";
import { navigate } from "../state/explore.js";

const shownMax = 50;
/** A question that reads more is asked only by a click. */
const bytesMax = 256e6;

interface SingleProps {
  /** The label that most streams have. */
  readonly label: string;
  readonly labels: readonly string[];
  readonly span: Span;
}

/** Streams that have one line in the range: often a label that should be a field, such as a request's id. */
export function SingleLines({ label, labels, span }: SingleProps) {
  const found = useSignal<readonly string[] | undefined>(undefined);
  const bytes = useSignal(0);
  const asked = useSignal(false);
  const problem = useSignal("");
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const query = smallestStreams(label, labels, span);
    const ask = async () => {
      const explained = await fetchExplanation(query, span, 1, signal);
      bytes.value = explained === undefined ? 0 : bytesToRead(explained);
      if (bytes.value > bytesMax && !asked.value) return;
      const { series } = await fetchInstant({ query, time: span.endNs }, signal);
      found.value = series
        .filter(({ points }) => points[0]?.[1] === 1)
        .map((one) => selectorOf(one.labels))
        .sort();
    };
    ask().catch((error: unknown) => {
      if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
    });
    return () => controller.abort();
  }, [label, labels.join(), span.startNs, span.endNs, asked.value]);
  if (problem.value !== "") return <p class="bad">{problem.value}</p>;
  const open = (selector: string) => {
    navigate({ screen: "explore" });
    editQuery(selector);
  };
  return (
    <section aria-label="Streams of one line">
      <h2>Streams of one line</h2>
      {found.value === undefined && bytes.value > bytesMax && (
        <button class="button small" type="button" onClick={() => (asked.value = true)}>
          Look for them: reads about {formatBytes(bytes.value)}
        </button>
      )}
      {found.value?.length === 0 && <p class="dim">None in this range.</p>}
      {found.value !== undefined && found.value.length > 0 && (
        <>
          <p class="warns">
            {found.value.length === shownMax ? `${shownMax} or more` : found.value.length}: a label
            that differs with each line is better a field
          </p>
          {found.value.map((selector) => (
            <p key={selector}>
              <button
                class="link mono"
                type="button"
                title="Open in Explore"
                onClick={() => open(selector)}
              >
                {selector}
              </button>
            </p>
          ))}
        </>
      )}
    </section>
  );
}

/** Counts by all labels: structured metadata would else split a stream. */
function smallestStreams(label: string, labels: readonly string[], span: Span): string {
  const ms = (BigInt(span.endNs) - BigInt(span.startNs)) / 1_000_000n;
  const counted = `count_over_time({${label}=~".+"} [${ms}ms])`;
  return `bottomk(${shownMax}, sum by (${labels.join(", ")}) (${counted}))`;
}

function selectorOf(labels: Readonly<Record<string, string>>): string {
  const matchers = Object.entries(labels).map(([name, value]) =>
    formatMatcher({ name, op: "=", value }),
  );
  return `{${matchers.join(", ")}}`;
}
