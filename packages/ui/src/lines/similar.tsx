import { useSignal } from "@preact/signals";
import { quote } from "@skald/model";
import { useEffect } from "preact/hooks";
import type { Span } from "../api/fields.js";
import type { Line } from "../api/lines.js";
import { fetchPatterns, type Pattern } from "../api/patterns.js";
import { Spark, trend } from "../chart/spark.js";
import { formatWhole } from "../parts/format.js";
import { matchesPattern, patternsOf } from "./mine.js";

interface SimilarProps {
  readonly line: Line;
  readonly selector: string;
  readonly span: Span;
  readonly shown: () => readonly Line[];
  /** Whether the server mines patterns. */
  readonly isMined: boolean;
  /** Adds a stage to the query. */
  readonly onStage: (stage: string) => void;
}

/** How many lines look like one, and when. */
export function Similar({ line, selector, span, shown, isMined, onStage }: SimilarProps) {
  const found = useSignal<Pattern | null | undefined>(undefined);
  useEffect(() => {
    const asked = new AbortController();
    const pick = (patterns: readonly Pattern[]) => {
      found.value = patterns.find(({ pattern }) => matchesPattern(pattern, line.text)) ?? null;
    };
    const mined = isMined
      ? fetchPatterns(selector, span, asked.signal)
      : Promise.resolve(undefined);
    mined.then(
      (patterns) => pick(patterns ?? patternsOf(shown())),
      () => pick(patternsOf(shown())),
    );
    return () => asked.abort();
  }, [line, selector]);
  const pattern = found.value;
  if (pattern === undefined) return <h2>Looking for its pattern…</h2>;
  if (pattern === null) return <h2>No pattern has lines like this one yet.</h2>;
  return (
    <div class="context">
      <h2>
        {formatWhole(pattern.lines)} lines look like this{isMined ? "" : ", of those on show"}
      </h2>
      <div class="tree">{pattern.pattern.replaceAll("<_>", " ··· ")}</div>
      <div class="tree">
        <Spark sums={trend(pattern.samples, span)} level={pattern.level} />
      </div>
      <div class="bar">
        <button
          class="button small"
          type="button"
          onClick={() => onStage(`|> ${quote(pattern.pattern)}`)}
        >
          Only these
        </button>
        <button
          class="button small"
          type="button"
          onClick={() => onStage(`!> ${quote(pattern.pattern)}`)}
        >
          All others
        </button>
      </div>
    </div>
  );
}
