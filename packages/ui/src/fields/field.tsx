import { useSignal } from "@preact/signals";
import type { LogExpr } from "@skald/logql/syntax";
import { useEffect } from "preact/hooks";
import { isAbort } from "../api/client.js";
import type { Field, LabelInfo, Span } from "../api/fields.js";
import type { Line } from "../api/lines.js";
import { formatCount, formatValue, formatWhole } from "../parts/format.js";
import type { Origin } from "../query/edit.js";
import { type CountedField, type Counts, countValues, valueIn } from "./counts.js";

export interface PanelProps {
  readonly labels: readonly LabelInfo[];
  readonly fields: readonly Field[];
  readonly log: LogExpr | undefined;
  readonly span: Span | undefined;
  readonly shown: () => readonly Line[];
  readonly open: readonly string[];
  readonly sheet: boolean;
  readonly onOpen: (names: readonly string[]) => void;
  readonly onFilter: (name: string, value: string, negated: boolean, origin: Origin) => void;
  /** Removes the sample logs; undefined where there are none, or nothing can be deleted. */
  readonly onRemoveSample: (() => void) | undefined;
  readonly onGraph: (name: string, parser: string | undefined) => void;
}

interface FieldRowProps extends PanelProps {
  readonly field: CountedField;
  readonly kind: string;
  readonly values: number;
  /** There may be more values than a sample had. */
  readonly sampled: boolean;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

const few = 8;
const many = 50;

export function FieldRow(props: FieldRowProps) {
  const { field, kind, values, sampled, isOpen, onToggle } = props;
  return (
    <div>
      <button class="head" type="button" aria-expanded={isOpen} onClick={onToggle}>
        <span class="arrow" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>
        <span class="kind" aria-hidden="true">
          {kind}
        </span>
        <span class="name">{field.name}</span>
        <span class="n">
          {values}
          {sampled ? "+" : ""}
        </span>
      </button>
      {isOpen && <Values {...props} />}
    </div>
  );
}

/** The most frequent values of a field, with their counts. */
function Values(props: FieldRowProps) {
  const { field, log, span, shown, onFilter, onGraph, kind } = props;
  const counts = useSignal<Counts | undefined>(undefined);
  const problem = useSignal("");
  const limit = useSignal(few);
  const all = useSignal(false);
  const wanted = useSignal("");
  useEffect(() => {
    if (log === undefined || span === undefined) return;
    const asked = new AbortController();
    countValues(field, log, {
      span,
      limit: limit.value,
      shown: shown(),
      all: all.value,
      signal: asked.signal,
    }).then(
      (found) => {
        counts.value = found;
        problem.value = "";
      },
      (error: unknown) => {
        if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => asked.abort();
  }, [log, span?.startNs, span?.endNs, limit.value, all.value]);
  const found = counts.value;
  if (problem.value !== "") return <p class="note-row bad">{problem.value}</p>;
  if (found === undefined) return <p class="note-row">counting…</p>;
  const most = found.values[0]?.count ?? 1;
  const rows = found.values.filter(({ value }) =>
    value.toLowerCase().includes(wanted.value.toLowerCase()),
  );
  const origin: Origin = field.isLabel
    ? { kind: "label" }
    : field.parser === undefined
      ? { kind: "metadata" }
      : { kind: "field", parser: field.parser };
  return (
    <div>
      {limit.value > few && (
        <div class="note-row">
          <input
            class="field"
            type="search"
            aria-label={`Find a value of ${field.name}`}
            placeholder="Find a value"
            onInput={(event) => (wanted.value = event.currentTarget.value)}
          />
        </div>
      )}
      {rows.map(({ value, count }) => (
        <div class="value" key={value}>
          <span class="fill" style={{ width: `${Math.max(1, (count / most) * 100)}%` }} />
          <span class="text" title={value}>
            {value.replace(/\s/g, (blank) => (blank === " " ? blank : "↵"))}
          </span>
          <span class="n" title={formatWhole(count)}>
            {formatCount(count)}
          </span>
          <button
            class="plus"
            type="button"
            aria-label={`Only ${field.name} ${value}`}
            title={`Only ${value}`}
            onClick={() => onFilter(field.name, value, false, origin)}
          >
            +
          </button>
          <button
            class="plus"
            type="button"
            aria-label={`Not ${field.name} ${value}`}
            title={`Not ${value}`}
            onClick={() => onFilter(field.name, value, true, origin)}
          >
            −
          </button>
        </div>
      ))}
      {kind === "#" && <Numbers name={field.name} shown={shown} />}
      <div class="note-row">
        {found.values.length === 0 && <span>no values</span>}
        {found.sampled !== undefined && (
          <>
            <span>of {formatWhole(found.sampled)} shown</span>
            <button type="button" onClick={() => (all.value = true)}>
              count all
            </button>
          </>
        )}
        {found.values.length >= few && limit.value === few && (
          <>
            <span>top {few}</span>
            <button type="button" onClick={() => (limit.value = many)}>
              more
            </button>
          </>
        )}
        <button type="button" onClick={() => onGraph(field.name, field.parser)}>
          graph by this
        </button>
      </div>
    </div>
  );
}

/** Minimum, median, 95th percentile and maximum of the lines on show. */
function Numbers({ name, shown }: { readonly name: string; readonly shown: PanelProps["shown"] }) {
  const values = shown()
    .map((line) => Number.parseFloat(valueIn(line, name) ?? ""))
    .filter((value) => !Number.isNaN(value))
    .sort((a, b) => a - b);
  if (values.length === 0) return null;
  const at = (share: number) => formatValue(values[Math.floor(share * (values.length - 1))] ?? 0);
  return (
    <div class="note-row stat" title={`of ${values.length} lines on show`}>
      <span>min {at(0)}</span>
      <span>median {at(0.5)}</span>
      <span>p95 {at(0.95)}</span>
      <span>max {at(1)}</span>
    </div>
  );
}
