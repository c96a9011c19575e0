import type { Line } from "../api/lines.js";
import { copy } from "../parts/toast.js";
import type { Origin } from "../query/edit.js";
import { parseJsonLine } from "./parse-line.js";
import { parsedOf } from "./row.js";

export interface FieldsProps {
  readonly line: Line;
  readonly links: readonly { readonly field: string; readonly url: string }[];
  readonly columns: readonly string[];
  readonly onFilter: (name: string, value: string, negated: boolean, origin: Origin) => void;
  readonly onColumn: (name: string) => void;
}

const shownMax = 20_000;
/** Of a kind; a field has eight elements. */
const fieldsMax = 120;

/** The fields of a line by where they come from, each with filters. */
export function Fields(props: FieldsProps) {
  const { line } = props;
  const { fields, format, message } = parsedOf(line);
  const json = format === "json" ? parseJsonLine(line.text) : undefined;
  const parser = format === "text" ? undefined : format;
  const own = Object.entries(line.parsed).filter(([name]) => line.metadata[name] === undefined);
  const inLine =
    own.length > 0
      ? own
      : (json ?? (parser === undefined || message === "" ? fields : withMessage(line, fields)));
  const groups = [
    ["From the line", inLine, { kind: "field", parser }],
    ["Structured metadata", Object.entries(line.metadata), { kind: "metadata" }],
    ["Stream", Object.entries(line.stream.labels), { kind: "label" }],
  ] as const satisfies readonly (readonly [
    string,
    readonly (readonly [string, string])[],
    Origin,
  ])[];
  return (
    <>
      {groups.map(([title, list, origin]) =>
        list.length === 0 ? null : (
          <section key={title}>
            <h2>{title}</h2>
            <dl>
              {list.slice(0, fieldsMax).map(([name, value]) => (
                <FieldLine key={name} {...{ name, value, origin, props }} />
              ))}
            </dl>
            {list.length > fieldsMax && (
              <h2>{list.length - fieldsMax} more fields, see the line</h2>
            )}
          </section>
        ),
      )}
    </>
  );
}

function withMessage(line: Line, fields: readonly (readonly [string, string])[]) {
  return [["msg", parsedOf(line).message] as const, ...fields];
}

function FieldLine(at: { name: string; value: string; origin: Origin; props: FieldsProps }) {
  const { name, value, origin, props } = at;
  const { links, columns, onFilter, onColumn } = props;
  const link = links.find(({ field }) => field === name);
  const label = name.replace(/[^A-Za-z0-9_]/g, "_");
  const text = value.length > shownMax ? `${value.slice(0, shownMax)}…` : value;
  return (
    <div>
      <dt title={name}>{name}</dt>
      <dd>
        {link === undefined ? (
          text
        ) : (
          <a
            href={link.url.replaceAll("{value}", encodeURIComponent(value))}
            target="_blank"
            rel="noopener noreferrer"
          >
            {text} ↗
          </a>
        )}
        <span class="acts">
          <button
            class="plus"
            type="button"
            aria-label={`Only ${name} ${value.slice(0, 60)}`}
            title="Only lines with this value (+)"
            onClick={() => onFilter(label, value, false, origin)}
          >
            +
          </button>
          <button
            class="plus"
            type="button"
            aria-label={`Not ${name} ${value.slice(0, 60)}`}
            title="Only lines without this value (-)"
            onClick={() => onFilter(label, value, true, origin)}
          >
            −
          </button>
          <button
            class="plus extra sign-copy"
            type="button"
            aria-label={`Copy ${name}`}
            title="Copy"
            onClick={() => void copy(value, name)}
          />
          <button
            class="plus extra sign-column"
            type="button"
            aria-pressed={columns.includes(label)}
            aria-label={`Column ${name}`}
            title="A column of the table"
            onClick={() => onColumn(label)}
          />
        </span>
      </dd>
    </div>
  );
}
