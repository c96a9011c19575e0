import { classOf, rangeOps, vectorOps } from "@skald/logql/syntax";
import { partsOf, type StagePart } from "./parts.js";

const filterWords: Readonly<Record<string, string>> = {
  ...{ "|=": "contains", "!=": "lacks", "|~": "matches", "!~": "matches not" },
  ...{ "|>": "pattern", "!>": "not pattern" },
};

/** A stage in words: `contains timeout`, `json`, `status >= 500`. */
export function wordsOf(
  text: string,
  { start, end, tokens }: StagePart,
): { name: string; value: string } {
  const word = filterWords[tokens[0]?.type ?? ""];
  if (word === undefined) return { name: "", value: text.slice(start, end).replace(/^\|\s*/, "") };
  const [value] = tokens.slice(1);
  const single = tokens.length === 2 && value?.type === "STRING";
  return { name: word, value: single ? String(value.value) : text.slice(value?.start, end) };
}

interface MetricChip {
  readonly name: string;
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

const calls: ReadonlySet<string> = new Set([...rangeOps, ...vectorOps]);

/** Functions, windows and groupings of a metric query. */
export function metricChips(text: string): MetricChip[] {
  const { tokens } = partsOf(text);
  return tokens.flatMap(({ type, start, end }, at): MetricChip[] => {
    if (calls.has(type)) return [{ name: "", value: text.slice(start, end), start, end }];
    if (type === "RANGE") return [{ name: "window", value: text.slice(start, end), start, end }];
    if (type !== "by" && type !== "without") return [];
    const close = tokens.slice(at).find((token) => token.type === ")");
    if (close === undefined) return [];
    return [{ name: "", value: text.slice(start, close.end), start, end: close.end }];
  });
}

/** Whether a query has parts that no chip shows. */
export function hasMore(text: string): boolean {
  const { tokens, selectors } = partsOf(text);
  const covered = (start: number) =>
    selectors.some(
      ({ start: from, end, stages }) => start >= from && start < (stages.at(-1)?.end ?? end),
    );
  return tokens.some(({ type, start }) => {
    if (covered(start) || calls.has(type) || type === "$end") return false;
    const kind = classOf(type);
    return kind === "function" || kind === "number"
      ? type !== "RANGE"
      : type === "unwrap" || type === "offset";
  });
}
