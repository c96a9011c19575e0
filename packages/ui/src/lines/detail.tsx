import type { ComponentChildren } from "preact";
import { Icon } from "../parts/icon.js";
import { onTabKey } from "../parts/tabs.js";
import { copy } from "../parts/toast.js";
import { formatTime, type Zone } from "../state/range.js";
import { runsOf } from "./ansi.js";
import { Fields, type FieldsProps } from "./detail-fields.js";
import { JsonTree } from "./json-tree.js";
import { parsedOf } from "./row.js";

export type DetailTab = "fields" | "raw" | "context" | "similar";

export interface DetailProps extends FieldsProps {
  readonly zone: Zone;
  readonly tab: DetailTab;
  readonly onTab: (tab: DetailTab) => void;
  readonly onMove: (step: number) => void;
  readonly onClose: () => void;
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
          <button
            class="tool"
            type="button"
            aria-label="Next line"
            title="Next line (J)"
            onClick={() => onMove(1)}
          >
            <Icon name="down" />
          </button>
          <button
            class="tool"
            type="button"
            aria-label="Line before"
            title="Line before (K)"
            onClick={() => onMove(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            class="tool"
            type="button"
            aria-label="Close"
            title="Close (Esc)"
            onClick={onClose}
          >
            <Icon name="close" />
          </button>
        </div>
        <div class="message" tabIndex={0} role="note">
          <Colored
            text={message === "" ? line.text.slice(0, shownMax) : message.slice(0, shownMax)}
          />
        </div>
        <div class="tabs" role="tablist" aria-label="About the line" onKeyDown={onTabKey}>
          {tabs.map(([name, label]) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              aria-selected={tab === name}
              tabIndex={tab === name ? 0 : -1}
              aria-controls="detail-content"
              onClick={() => onTab(name)}
            >
              {label}
            </button>
          ))}
        </div>
      </header>
      <div
        class="content"
        id="detail-content"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        tabIndex={0}
      >
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
        <span class={className} key={at}>
          {part}
        </span>
      ))}
    </>
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
