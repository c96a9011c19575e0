import type { ComponentChildren } from "preact";
import type { Line } from "../api/lines.js";
import { Icon } from "../parts/icon.js";
import { copy } from "../parts/toast.js";
import type { Origin } from "../query/edit.js";
import { formatTime, type Zone } from "../state/range.js";
import { runsOf } from "./ansi.js";
import { JsonTree } from "./json-tree.js";
import { parsedOf } from "./row.js";
import { parseJsonLine } from "./parse-line.js";

export type DetailTab = "fields" | "raw" | "context" | "similar";

export interface DetailProps {
  readonly line: Line;
  readonly zone: Zone;
  readonly tab: DetailTab;
  readonly links: readonly { readonly field: string; readonly url: string }[];
  readonly columns: readonly string[];
  readonly onTab: (tab: DetailTab) => void;
  readonly onMove: (step: number) => void;
  readonly onClose: () => void;
  readonly onFilter: (name: string, value: string, negated: boolean, origin: Origin) => void;
  readonly onColumn: (name: string) => void;
  readonly onShare: () => void;
  readonly context: () => ComponentChildren;
  readonly similar: () => ComponentChildren;
}

const shownMax = 20_000;

/** One line with all that is known of it. */
export function Detail(props: DetailProps) {
  const { line, zone, tab, onTab, onMove, onClose, onShare } = props;
  const { message, format } = parsedOf(line);
  const tabs = [
    ["fields", "Fields"],
    ["raw", format === "json" ? "JSON" : "Raw"],
    ["context", "Context"],
    ["similar", "Similar"],
  ] as const;
  return (
    <section class="detail" aria-label="Line">
      <header>
        <div class="title">
          <span class={`pill l-${line.level}`}>{line.level}</span>
          <b class="mono" title={formatTime(line.ns, zone, "ns")}>
            {formatTime(line.ns, zone).slice(11)}
          </b>
          <span class="dim grow">{line.stream.source}</span>
          <button class="tool" type="button" aria-label="Next line" title="Next line (J)" onClick={() => onMove(1)}>
            <Icon name="down" />
          </button>
          <button class="tool" type="button" aria-label="Line before" title="Line before (K)" onClick={() => onMove(-1)}>
            <Icon name="up" />
          </button>
          <button class="tool" type="button" aria-label="Close" title="Close (Esc)" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach it. */}
        <div class="message" tabIndex={0} role="note">
          <Colored text={message === "" ? line.text.slice(0, shownMax) : message.slice(0, shownMax)} />
        </div>
        <div class="tabs" role="tablist" aria-label="About the line">
          {tabs.map(([name, label]) => (
            <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={tab === name} aria-controls="detail-content" onClick={() => onTab(name)}>
              {label}
            </button>
          ))}
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach it. */}
      <div class="content" id="detail-content" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "fields" && <Fields {...props} />}
        {tab === "raw" && <Raw text={line.text} />}
        {tab === "context" && props.context()}
        {tab === "similar" && props.similar()}
      </div>
      <footer>
        <button class="button" type="button" onClick={onShare}>
          <Icon name="link" />
          Link to line
        </button>
        <button class="button" type="button" onClick={() => void copy(line.text, "the line")}>
          Copy
        </button>
        <button class="button" type="button" onClick={() => onTab("context")}>
          Show context
        </button>
      </footer>
    </section>
  );
}

function Colored({ text }: { readonly text: string }) {
  return (
    <>
      {runsOf(text).map(({ text: part, className }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: runs have no other name.
        <span class={className} key={at}>
          {part}
        </span>
      ))}
    </>
  );
}

const fieldsMax = 500;

function Fields(props: DetailProps) {
  const { line } = props;
  const { fields, format, message } = parsedOf(line);
  const json = format === "json" ? parseJsonLine(line.text) : undefined;
  const parser = format === "text" ? undefined : format;
  const own = Object.entries(line.parsed).filter(([name]) => line.metadata[name] === undefined);
  const inLine = own.length > 0 ? own : (json ?? (parser === undefined || message === "" ? fields : withMessage(line, fields)));
  const groups = [
    ["From the line", inLine, { kind: "field", parser }],
    ["Structured metadata", Object.entries(line.metadata), { kind: "metadata" }],
    ["Stream", Object.entries(line.stream.labels), { kind: "label" }],
  ] as const satisfies readonly (readonly [string, readonly (readonly [string, string])[], Origin])[];
  return (
    <>
      {groups.map(([title, list, origin]) =>
        list.length === 0 ? null : (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {list.slice(0, fieldsMax).map(([name, value]) => (
                <FieldLine key={name} {...{ name, value, origin, props }} />
              ))}
            </dl>
            {list.length > fieldsMax && <h3>{list.length - fieldsMax} more fields are not shown</h3>}
          </section>
        ),
      )}
    </>
  );
}

function withMessage(line: Line, fields: readonly (readonly [string, string])[]) {
  return [["msg", parsedOf(line).message] as const, ...fields];
}

function FieldLine(at: { name: string; value: string; origin: Origin; props: DetailProps }) {
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
          <a href={link.url.replaceAll("{value}", encodeURIComponent(value))} target="_blank" rel="noopener noreferrer">
            {text} ↗
          </a>
        )}
      </dd>
      <span class="acts">
        <button class="plus" type="button" aria-label={`Only ${name} ${value.slice(0, 60)}`} title="Only lines with this value (+)" onClick={() => onFilter(label, value, false, origin)}>
          +
        </button>
        <button class="plus" type="button" aria-label={`Not ${name} ${value.slice(0, 60)}`} title="Only lines without this value (-)" onClick={() => onFilter(label, value, true, origin)}>
          −
        </button>
        <button class="plus extra" type="button" aria-label={`Copy ${name}`} title="Copy" onClick={() => void copy(value, name)}>
          ⧉
        </button>
        <button class="plus extra" type="button" aria-pressed={columns.includes(label)} aria-label={`Column ${name}`} title="A column of the table" onClick={() => onColumn(label)}>
          ▥
        </button>
      </span>
    </div>
  );
}

function Raw({ text }: { readonly text: string }) {
  if (text.startsWith("{") || text.startsWith("[")) {
    try {
      return <JsonTree value={JSON.parse(text)} />;
    } catch {
      // The line only begins like JSON.
    }
  }
  return (
    <div class="tree">
      <Colored text={text} />
    </div>
  );
}
